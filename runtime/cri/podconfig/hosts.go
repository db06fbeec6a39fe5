package podconfig

import (
	"fmt"
	"net/netip"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// NeedsHostsFile reports whether the pod's /etc/hosts is mounted into container c: if the
// pod has addresses or is in the host network, and no volume is mounted at /etc/hosts.
func NeedsHostsFile(pod *v1.Pod, c *v1.Container, ips []string) bool {
	for i := range c.VolumeMounts {
		if AbsolutePath(c.VolumeMounts[i].MountPath) == hostsPath {
			return false
		}
	}
	return pod.Spec.HostNetwork || len(ips) > 0
}

// HostsFile returns the content of a pod's /etc/hosts (rules pe-15 to pe-17). ips are the
// pod's addresses. nodeFile is the content of the node's /etc/hosts, which pods in the
// host network share. It returns an error that names a value which is not a valid entry.
func HostsFile(pod *v1.Pod, ips []string, clusterDomain, nodeFile string) (string, error) {
	var b strings.Builder
	if pod.Spec.HostNetwork {
		b.WriteString("# Kubernetes-managed hosts file (host network).\n" + nodeFile)
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
				return "", fmt.Errorf("invalid pod IP %q", ip)
			}
			b.WriteString(ip + "\t" + names + "\n")
		}
	}
	return addAliases(&b, pod.Spec.HostAliases)
}

// addAliases adds the hostAliases of the pod.
func addAliases(b *strings.Builder, aliases []v1.HostAlias) (string, error) {
	if len(aliases) > 0 {
		b.WriteString("\n# Entries added by HostAliases.\n")
	}
	for i, alias := range aliases {
		if !isAddress(alias.IP) {
			return "", fmt.Errorf("spec.hostAliases[%d].ip: invalid IP address %q", i, alias.IP)
		}
		for j, name := range alias.Hostnames {
			if name == "" || !oneWord(name) || strings.Contains(name, "#") {
				return "", fmt.Errorf("spec.hostAliases[%d].hostnames[%d]: invalid hostname %q", i, j, name)
			}
		}
		b.WriteString(alias.IP + "\t" + strings.Join(alias.Hostnames, "\t") + "\n")
	}
	return b.String(), nil
}

// isAddress reports whether s is an IP address. netip.ParseAddr accepts any zone, as in
// fe80::1%eth0, including white space.
func isAddress(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil && oneWord(s)
}
