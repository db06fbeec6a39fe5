package main

import "net"

// nodeIPs returns the addresses by which others reach this machine, or loopback
// if there is none: what pods of the host network show as theirs.
func nodeIPs() []string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var ips, loopback []string
	for _, a := range addrs {
		switch ip, ok := a.(*net.IPNet); {
		case !ok || ip.IP.IsLinkLocalUnicast() || ip.IP.To4() == nil:
		case ip.IP.IsLoopback():
			loopback = append(loopback, ip.IP.String())
		default:
			ips = append(ips, ip.IP.String())
		}
	}
	ips = append(ips, loopback...)
	return ips[:min(len(ips), 1)]
}

// configuredIPs returns the addresses given with --node-ip, or else those found. An
// unspecified address, "0.0.0.0" or "::", is only a preference for a family.
func configuredIPs(given []net.IP, found []string) []string {
	var ips []string
	for _, ip := range given {
		if !ip.IsUnspecified() {
			ips = append(ips, ip.String())
		}
	}
	if len(ips) == 0 {
		return found
	}
	return ips
}
