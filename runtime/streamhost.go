package runtime

import (
	"fmt"
	"net"
	"net/url"
	"slices"
)

// CheckStreamHost returns an error unless u, at which a runtime serves a stream, is an
// http or https URL of this machine or of one of hosts. Loopback addresses and the
// addresses of the machine's interfaces are this machine; hosts are further IP addresses
// or names, compared as they are written. Names other than "localhost" are not resolved.
//
// The CRI lets a runtime answer any URL. One that is compromised could otherwise have the
// node send requests to other machines, such as a cloud's metadata service, and return the
// response to the client. The error does not contain the path of u, which is a secret.
//
// Safe for concurrent use.
func CheckStreamHost(u *url.URL, hosts []string) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("the runtime has its streams at a URL with the scheme %q, not http or https", u.Scheme)
	}
	host := u.Hostname()
	if slices.Contains(hosts, host) || host == "localhost" {
		return nil
	}
	if ip := net.ParseIP(host); ip != nil {
		if ip.IsLoopback() {
			return nil
		}
		own, err := net.InterfaceAddrs()
		if err != nil {
			return fmt.Errorf("list the addresses of this machine: %w", err)
		}
		for _, a := range own {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
				return nil
			}
		}
	}
	return fmt.Errorf("the runtime has its streams at %s, which is not this machine", host)
}
