package main

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
)

// pageSocket is the name of the status page's socket in the agent's root.
const pageSocket = "agent.sock"

// A pageAddress is where the status page is served. The zero value is nowhere.
type pageAddress struct {
	network, address string // "tcp" or "unix"
}

// parseListen reads --listen: a unix socket as unix:///PATH, an IP address or name with a
// port, or nothing. An address without a host is an error: it would be all of this
// machine's.
func parseListen(text string) (pageAddress, error) {
	if text == "" {
		return pageAddress{}, nil
	}
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		path, ok = strings.CutPrefix(path, "//")
		if !ok || !filepath.IsAbs(path) {
			return pageAddress{}, fmt.Errorf("--listen=%q: want an absolute path such as unix:///run/kubeparts.sock", text)
		}
		return pageAddress{"unix", filepath.Clean(path)}, nil
	}
	host, _, err := net.SplitHostPort(text)
	if err != nil {
		return pageAddress{}, fmt.Errorf("--listen=%q: want an address and a port such as 127.0.0.1:10258, or unix:///PATH", text)
	}
	if host == "" {
		return pageAddress{}, fmt.Errorf("--listen=%q names no address: say 127.0.0.1%s, or 0.0.0.0%s if everybody who reaches this machine may read what runs on it", text, text, text)
	}
	return pageAddress{"tcp", text}, nil
}

// fillListen sets where the status page is, once the root is known. An agent that is a
// node of a cluster or has a configuration file runs beside users who are not to read
// what runs there: it serves the page at a socket in its root.
func (o *options) fillListen() (err error) {
	switch {
	case o.listen != nil:
		o.page, err = parseListen(*o.listen)
	case !o.cluster.on() && !o.configured():
		o.page = pageAddress{"tcp", "127.0.0.1:10258"}
	case len(o.root)+temporarySocket > maxSocketPath:
		o.warnings = append(o.warnings, fmt.Sprintf("no status page: the path of a socket in --root=%s would be too long; --listen=unix:///PATH names another", o.root))
	default:
		o.page = pageAddress{"unix", filepath.Join(o.root, pageSocket)}
	}
	return err
}

func (p pageAddress) listen() (net.Listener, error) {
	if p.network == "unix" {
		return listenUnix(p.address)
	}
	return net.Listen(p.network, p.address)
}

// onlyLocal reports whether only users of this machine can connect.
func (p pageAddress) onlyLocal() bool {
	if p.network == "tcp" {
		host, _, _ := net.SplitHostPort(p.address)
		return loopback(host)
	}
	return true
}

// whereIs returns how the page is reached at addr.
func whereIs(addr net.Addr) string {
	if addr.Network() == "unix" {
		return "curl --unix-socket " + addr.String() + " http://localhost/"
	}
	return "http://" + addr.String() + "/"
}

// loopback reports whether only this machine reaches a host.
func loopback(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// openToAll returns a warning for an address that other machines reach; "" otherwise.
func openToAll(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); !ok || tcp.IP.IsLoopback() {
		return ""
	}
	return fmt.Sprintf("warning: everybody who reaches %s can read what runs on this node, except values of environments and annotations: requests are not authenticated", addr)
}

// onlyLocalNames refuses requests to a loopback address that was reached by another name:
// a web page could have its own name lead here, and read what the browser of a user of
// this machine reads. No browser connects to a unix socket.
func onlyLocalNames(addr net.Addr, next http.Handler) http.Handler {
	if addr.Network() == "unix" || openToAll(addr) != "" {
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
