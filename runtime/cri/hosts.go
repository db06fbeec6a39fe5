package cri

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// hostnameOf returns the pod's hostname and the domain it is in, "" for none
// (pe-18).
func hostnameOf(pod *v1.Pod, clusterDomain string) (host, domain string, err error) {
	host = pod.Name
	if pod.Spec.Hostname != "" {
		if msgs := validation.IsDNS1123Label(pod.Spec.Hostname); len(msgs) > 0 {
			return "", "", fmt.Errorf("pod Hostname %q is not a valid DNS label: %s", pod.Spec.Hostname, strings.Join(msgs, ";"))
		}
		host = pod.Spec.Hostname
	}
	if pod.Spec.HostnameOverride != nil && *pod.Spec.HostnameOverride != "" {
		return *pod.Spec.HostnameOverride, "", nil
	}
	if len(host) > 63 {
		if host = strings.TrimRight(host[:63], "-."); host == "" {
			return "", "", fmt.Errorf("hostname %q has no valid part", pod.Name)
		}
	}
	if pod.Spec.Subdomain != "" {
		domain = pod.Spec.Subdomain + "." + pod.Namespace + ".svc"
		if clusterDomain != "" { // or the kernel's hostname would end in a dot
			domain += "." + clusterDomain
		}
	}
	return host, domain, nil
}

// hostsFile returns the content of a pod's /etc/hosts (pe-15 … pe-17). of is the
// node's, for pods of the host network.
func hostsFile(pod *v1.Pod, ips []string, host, domain, of string) string {
	var b strings.Builder
	if pod.Spec.HostNetwork {
		b.WriteString("# Kubernetes-managed hosts file (host network).\n" + of)
	} else {
		b.WriteString("# Kubernetes-managed hosts file.\n" +
			"127.0.0.1\tlocalhost\n" +
			"::1\tlocalhost ip6-localhost ip6-loopback\n" +
			"fe00::0\tip6-localnet\n" +
			"fe00::0\tip6-mcastprefix\n" +
			"fe00::1\tip6-allnodes\n" +
			"fe00::2\tip6-allrouters\n")
		for _, ip := range ips {
			if domain != "" {
				fmt.Fprintf(&b, "%s\t%s.%s\t%s\n", ip, host, domain, host)
			} else {
				fmt.Fprintf(&b, "%s\t%s\n", ip, host)
			}
		}
	}
	if len(pod.Spec.HostAliases) > 0 {
		b.WriteString("\n# Entries added by HostAliases.\n")
		for _, alias := range pod.Spec.HostAliases {
			b.WriteString(alias.IP + "\t" + strings.Join(alias.Hostnames, "\t") + "\n")
		}
	}
	return b.String()
}

// writeHosts writes the pod's /etc/hosts and returns its path on this machine.
func (r *Runtime) writeHosts(pod *v1.Pod, ips []string) (string, error) {
	host, domain, err := hostnameOf(pod, r.cfg.DNS.ClusterDomain)
	if err != nil {
		return "", err
	}
	var of []byte
	if pod.Spec.HostNetwork {
		if of, err = os.ReadFile("/etc/hosts"); err != nil && !os.IsNotExist(err) {
			return "", err
		}
	}
	path := filepath.Join(r.podDir(pod), "etc-hosts")
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return "", err
	}
	if err := os.WriteFile(path, []byte(hostsFile(pod, ips, host, domain, string(of))), 0o644); err != nil {
		return "", err
	}
	return path, os.Chmod(path, 0o644) // whatever the umask (pe-14)
}

// podDir is the directory of a pod's files (sl-33).
func (r *Runtime) podDir(pod *v1.Pod) string {
	return filepath.Join(r.cfg.RootDir, "pods", string(pod.UID))
}
