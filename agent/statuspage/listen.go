package statuspage

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
)

// Listen opens the address of a status page: HOST:PORT, where HOST must not be empty, or
// unix:///PATH. A unix socket is created with the mode 0600, and replaces one at which no
// process listens; the listener removes it when it is closed.
func Listen(address string) (net.Listener, error) {
	network, address, err := parseAddress(address)
	if err != nil {
		return nil, fmt.Errorf("statuspage: %w", err)
	}
	if network == "unix" {
		return listenUnix(address)
	}
	return net.Listen(network, address)
}

// Local reports whether only users of this machine can connect to an address that is
// passed to [Listen]. It opens nothing. It returns an error if the address is invalid.
func Local(address string) (bool, error) {
	network, address, err := parseAddress(address)
	if err != nil || network == "unix" {
		return err == nil, err
	}
	host, _, err := net.SplitHostPort(address)
	return isLoopback(host), err
}

// parseAddress returns the network and the address for net.Listen. An empty host, which
// net.Listen takes for all addresses of the machine, is an error.
func parseAddress(text string) (network, address string, err error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		path, ok = strings.CutPrefix(path, "//")
		if !ok || !filepath.IsAbs(path) {
			return "", "", fmt.Errorf("address %q: not an absolute path such as unix:///run/agent.sock", text)
		}
		path = filepath.Clean(path)
		if dir := filepath.Dir(path); len(dir) > maxSocketDir || len(path) > maxSocketPath {
			return "", "", fmt.Errorf("address %q: the path has more than %d bytes, or its directory has more than %d bytes", text, maxSocketPath, maxSocketDir)
		}
		return "unix", path, nil
	}
	host, _, err := net.SplitHostPort(text)
	switch {
	case err != nil:
		return "", "", fmt.Errorf("address %q: not HOST:PORT, such as 127.0.0.1:10258, or unix:///PATH", text)
	case host == "":
		return "", "", fmt.Errorf("address %q has no host: use 127.0.0.1%s, or 0.0.0.0%s to let every machine that can connect read the state of the pods", text, text, text)
	}
	return "tcp", text, nil
}

// Reach returns how users reach the page at addr: a URL, or a curl command for a unix
// socket.
func Reach(addr net.Addr) string {
	if addr.Network() == "unix" {
		return "curl --unix-socket " + addr.String() + " http://localhost/"
	}
	return "http://" + addr.String() + "/"
}

// Warning returns the warning to print if other machines can connect to addr; else "".
func Warning(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); !ok || tcp.IP.IsLoopback() {
		return ""
	}
	return fmt.Sprintf("Every machine that can connect to %s can read the state of the pods and the last lines of their logs, except literal values of environment variables and annotations: requests are not authenticated", addr)
}

// isLoopback reports whether only this machine can connect to a host.
func isLoopback(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
