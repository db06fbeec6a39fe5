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
