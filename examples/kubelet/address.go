package main

import "net"

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
