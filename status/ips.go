package status

import (
	"fmt"
	"net/netip"

	v1 "k8s.io/api/core/v1"
)

// setIPs sets the addresses of the pod and of its host.
//
// A terminating pod keeps its reported addresses; a pod that has lost its sandbox has none until it has
// a new one. A rejected pod has only addresses that were reported before.
func setIPs(s *v1.PodStatus, f *Facts, prev *v1.PodStatus) {
	host := canonical(f.HostIPs)
	if isRejected(s) && len(prev.HostIPs) == 0 {
		host = nil
	}
	for _, ip := range host {
		s.HostIPs = append(s.HostIPs, v1.HostIP{IP: ip.String()})
	}
	if len(host) == 0 {
		s.HostIPs = prev.HostIPs
	}
	if len(s.HostIPs) > 0 {
		s.HostIP = s.HostIPs[0].IP
	}

	reported := addresses(prev.PodIPs)
	var ips []netip.Addr
	switch terminating := f.Termination.Terminal || f.Termination.Failed || f.Pod.DeletionTimestamp != nil || Terminal(s.Phase); {
	case f.Pod.Spec.HostNetwork:
		ips = hostNetworkIPs(reported, host)
	case f.Observed == nil:
		ips = reported
	default:
		ips = selectPodIPs(f.Observed.IPs, f.HostIPs)
		if len(ips) == 0 && terminating {
			ips = reported
		}
	}
	for _, ip := range ips {
		s.PodIPs = append(s.PodIPs, v1.PodIP{IP: ip.String()})
	}
	if len(s.PodIPs) > 0 {
		s.PodIP = s.PodIPs[0].IP
	}
}

// selectPodIPs returns the addresses of a pod from those of its sandbox (rule st-45): the first of the
// host's primary family, then the first of the other family. Without addresses of the host, the family of
// the first address is primary. Invalid addresses are ignored.
func selectPodIPs(sandbox, host []string) []netip.Addr {
	all := canonical(sandbox)
	if len(all) == 0 {
		return nil
	}
	primary := all[0].Is4()
	if h := canonical(host); len(h) > 0 {
		primary = h[0].Is4()
	}
	var picked []netip.Addr
	for _, family := range []bool{primary, !primary} {
		for _, ip := range all {
			if ip.Is4() == family {
				picked = append(picked, ip)
				break
			}
		}
	}
	return picked
}

// mixedFamilies returns a message if the primary addresses of the pod and of the node have different
// families, which occurs for pods in the host network after the node's address has changed; else "".
func mixedFamilies(s *v1.PodStatus) string {
	host, err := netip.ParseAddr(s.HostIP)
	pod, podErr := netip.ParseAddr(s.PodIP)
	if err != nil || podErr != nil || host.Is4() == pod.Is4() {
		return ""
	}
	return fmt.Sprintf("The pod's address %s and the node's %s are of different IP families", pod, host)
}

// hostNetworkIPs returns the addresses of a pod in the host network: the first one reported is kept, and
// one of the other family may be added later.
func hostNetworkIPs(reported, host []netip.Addr) []netip.Addr {
	ips := reported
	if len(ips) == 0 {
		ips = host[:min(1, len(host))]
	}
	if len(ips) == 1 {
		for _, ip := range host {
			if ip.Is4() != ips[0].Is4() {
				return []netip.Addr{ips[0], ip}
			}
		}
	}
	return ips
}

// canonical parses addresses and ignores invalid ones. An IPv4-mapped IPv6 address counts as IPv4.
func canonical(list []string) []netip.Addr {
	var ips []netip.Addr
	for _, s := range list {
		if ip, err := netip.ParseAddr(s); err == nil {
			ips = append(ips, ip.Unmap())
		}
	}
	return ips
}

// addresses returns the addresses in the status of a pod.
func addresses(list []v1.PodIP) []netip.Addr {
	var ips []netip.Addr
	for _, p := range list {
		if ip, err := netip.ParseAddr(p.IP); err == nil {
			ips = append(ips, ip.Unmap())
		}
	}
	return ips
}
