package auth

import (
	"net"
	"net/netip"
)

// ClientKey returns the key under which the limits of a client count: the host of a remote address
// without its port and, for IPv6, its /64, since one host has all addresses of such a network. An
// address of another form is returned unchanged.
func ClientKey(remoteAddr string) string {
	host, _, err := net.SplitHostPort(remoteAddr)
	if err != nil {
		host = remoteAddr
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	ip = ip.Unmap()
	if ip.Is4() {
		return ip.String()
	}
	network, err := ip.WithZone("").Prefix(64)
	if err != nil {
		return host
	}
	return network.String()
}
