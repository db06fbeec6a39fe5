package agent

import "net"

// InterfaceIPs returns the address of this machine for Config.HostIPs: the first IPv4
// address of its network interfaces that is neither link-local nor loopback, else a
// loopback address. It returns none if the interfaces cannot be listed. It reads the
// interfaces at each call.
func InterfaceIPs() []string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	return primaryIP(addrs)
}

// primaryIP returns the address by which other machines can connect; loopback if there
// is none.
func primaryIP(addrs []net.Addr) []string {
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
