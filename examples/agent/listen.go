package main

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// checkListen refuses an address that does not say which one it is: without a host
// it would be all of this machine's.
func checkListen(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("--listen=%q: want an address and a port such as 127.0.0.1:10258", addr)
	}
	if host == "" {
		return fmt.Errorf("--listen=%q names no address: say 127.0.0.1%s, or 0.0.0.0%s if everybody who reaches this machine may read what runs on it", addr, addr, addr)
	}
	return nil
}

// loopback reports whether only this machine reaches a host.
func loopback(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// openToAll says what follows from serving at an address which others reach; ""
// where they don't.
func openToAll(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		return ""
	}
	return fmt.Sprintf("warning: everybody who reaches %s can read what runs on this node, the environment of its pods included: nobody is asked who he is", addr)
}

// onlyLocalNames refuses requests to a loopback address that was reached by a name of
// somewhere else: a web page could have its own name lead here, and read what the
// browser of somebody on this machine reads.
func onlyLocalNames(addr net.Addr, next http.Handler) http.Handler {
	if openToAll(addr) != "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if !loopback(strings.Trim(host, "[]")) {
			http.Error(w, "this is a page of the machine itself: ask for it as "+addr.String(), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
