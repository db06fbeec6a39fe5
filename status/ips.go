package status

import (
	"fmt"
	"net/netip"

	v1 "k8s.io/api/core/v1"
)

// setIPs fills in the addresses of the pod and of its host (st-44, st-45).
//
// A pod that is ending keeps its addresses, for those who want to know whose
// they were; one whose sandbox is lost has none until it gets a new one.
func setIPs(s *v1.PodStatus, f *Facts, prev *v1.PodStatus) {
	host := canonical(f.HostIPs)
	for _, ip := range host {
		s.HostIPs = append(s.HostIPs, v1.HostIP{IP: ip.String()})
	}
	if len(host) == 0 {
		s.HostIPs = prev.HostIPs
	}
	if len(s.HostIPs) > 0 {
		s.HostIP = s.HostIPs[0].IP
	}

	said := addresses(prev.PodIPs)
	var ips []netip.Addr
	switch ending := f.Termination.Terminal || f.Termination.Failed || f.Pod.DeletionTimestamp != nil || Terminal(s.Phase); {
	case f.Pod.Spec.HostNetwork:
		ips = hostNetworkIPs(said, host)
	case f.Observed == nil:
		ips = said
	default:
		ips = PodIPs(f.Observed.IPs, f.HostIPs)
		if len(ips) == 0 && ending {
			ips = said
		}
	}
	for _, ip := range ips {
		s.PodIPs = append(s.PodIPs, v1.PodIP{IP: ip.String()})
	}
	if len(s.PodIPs) > 0 {
		s.PodIP = s.PodIPs[0].IP
	}
}

// PodIPs picks the addresses a pod shows from those its sandbox has (st-45):
// the first of the host's primary family, then the first of the other family.
// Without addresses of the host, the family of the sandbox's first address is
// primary. What is no address is left out.
func PodIPs(sandbox, host []string) []netip.Addr {
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

// mixedFamilies says that the pod's first address is of another family than the
// node's, as those of a pod in the host's network are whose node has changed its
// (st-44); "": it is not.
func mixedFamilies(s *v1.PodStatus) string {
	host, err := netip.ParseAddr(s.HostIP)
	pod, podErr := netip.ParseAddr(s.PodIP)
	if err != nil || podErr != nil || host.Is4() == pod.Is4() {
		return ""
	}
	return fmt.Sprintf("The pod's address %s and the node's %s are of different IP families", pod, host)
}

// hostNetworkIPs returns the addresses of a pod in the host's network: the
// first stays as said, a second of the other family may be added later.
func hostNetworkIPs(said, host []netip.Addr) []netip.Addr {
	ips := said
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

// canonical parses addresses and leaves out what is none. An IPv4 address in
// IPv6 clothes counts as IPv4.
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
