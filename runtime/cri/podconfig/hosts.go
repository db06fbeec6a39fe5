package podconfig

import (
	"fmt"
	"net/netip"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// WantsHosts reports whether container c gets the pod's /etc/hosts: once the pod
// has addresses, or those of the node, and unless a volume is mounted just there
// (pe-14).
func WantsHosts(pod *v1.Pod, c *v1.Container, ips []string) bool {
	for i := range c.VolumeMounts {
		if AbsolutePath(c.VolumeMounts[i].MountPath) == hostsPath {
			return false
		}
	}
	return pod.Spec.HostNetwork || len(ips) > 0
}

// Hosts returns the content of a pod's /etc/hosts (pe-15 … pe-17). ips are the
// pod's addresses, and ofNode is the node's file, for pods of the host network.
// The error names what would not stay one entry of the file.
func Hosts(pod *v1.Pod, ips []string, clusterDomain, ofNode string) (string, error) {
	var b strings.Builder
	if pod.Spec.HostNetwork { // its names are the node's own
		b.WriteString("# Kubernetes-managed hosts file (host network).\n" + ofNode)
	} else {
		host, domain, err := Hostname(pod, clusterDomain)
		if err != nil {
			return "", err
		}
		names := host
		if domain != "" {
			names = host + "." + domain + "\t" + host
		}
		b.WriteString("# Kubernetes-managed hosts file.\n" +
			"127.0.0.1\tlocalhost\n" +
			"::1\tlocalhost ip6-localhost ip6-loopback\n" +
			"fe00::0\tip6-localnet\n" +
			"fe00::0\tip6-mcastprefix\n" +
			"fe00::1\tip6-allnodes\n" +
			"fe00::2\tip6-allrouters\n")
		for _, ip := range ips {
			if !isAddress(ip) {
				return "", fmt.Errorf("the pod's address %q is none", ip)
			}
			b.WriteString(ip + "\t" + names + "\n")
		}
	}
	return addAliases(&b, pod.Spec.HostAliases)
}

// addAliases adds the entries that the pod's spec has (pe-16).
func addAliases(b *strings.Builder, aliases []v1.HostAlias) (string, error) {
	if len(aliases) > 0 {
		b.WriteString("\n# Entries added by HostAliases.\n")
	}
	for i, alias := range aliases {
		if !isAddress(alias.IP) {
			return "", fmt.Errorf("spec.hostAliases[%d].ip: %q is no address", i, alias.IP)
		}
		for j, name := range alias.Hostnames {
			if name == "" || !oneWord(name) || strings.Contains(name, "#") {
				return "", fmt.Errorf("spec.hostAliases[%d].hostnames[%d]: %q is no hostname", i, j, name)
			}
		}
		b.WriteString(alias.IP + "\t" + strings.Join(alias.Hostnames, "\t") + "\n")
	}
	return b.String(), nil
}

// isAddress reports whether s is an IP address. A zone, as in fe80::1%eth0, may
// be anything but more than a word.
func isAddress(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil && oneWord(s)
}
