package statuspage

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAnAddressThatOtherMachinesReachHasAWarning(t *testing.T) {
	for _, addr := range []net.Addr{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, &net.TCPAddr{IP: net.IPv6loopback, Port: 1}, &net.UnixAddr{Name: "/s", Net: "unix"}} {
		assert.Empty(t, Warning(addr))
	}
	for _, ip := range []net.IP{net.IPv4zero, net.IPv6unspecified, net.IPv4(192, 0, 2, 1), nil} {
		assert.Contains(t, Warning(&net.TCPAddr{IP: ip, Port: 1}), "Every machine that can connect to")
	}
}

func TestAddressesAreExplicit(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:10258": true, "[::1]:1": true, "localhost:0": true, "unix:///run/agent.sock": true,
		"0.0.0.0:10258": false, "[::]:1": false, "node-1.example:1": false,
	} {
		local, err := Local(address)
		assert.NoError(t, err, address)
		assert.Equal(t, want, local, address)
	}
	for address, want := range map[string]string{
		":10258":                              "has no host: use 127.0.0.1:10258, or 0.0.0.0:10258 to let every machine",
		"":                                    "not HOST:PORT, such as 127.0.0.1:10258",
		"10258":                               "not HOST:PORT",
		"unix:agent.sock":                     "not an absolute path such as unix:///",
		"unix://x/y":                          "not an absolute path such as unix:///",
		"unix://":                             "not an absolute path such as unix:///",
		"unix:///" + strings.Repeat("x", 200): "has more than 103 bytes",
	} {
		_, err := Local(address)
		assert.ErrorContains(t, err, want, address)
		_, err = Listen(address)
		assert.ErrorContains(t, err, want, address)
	}
}

func TestURLOfThePage(t *testing.T) {
	assert.Equal(t, "http://127.0.0.1:10258/", Reach(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 10258}))
	assert.Equal(t, "curl --unix-socket /run/s http://localhost/", Reach(&net.UnixAddr{Name: "/run/s", Net: "unix"}))
}

// The name of a web page may resolve to this machine, so that the browser of a local user
// requests the page by that name.
func TestALoopbackAddressAnswersToLocalNamesOnly(t *testing.T) {
	here := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 10258}
	ask := func(addr net.Addr, host string) int {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Host = host
		onlyLocalNames(addr, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		return w.Code
	}
	for _, host := range []string{"127.0.0.1:10258", "127.0.0.1", "localhost:8080", "LOCALHOST.", "[::1]:10258", "127.1.2.3", "node.localhost", "[::ffff:127.0.0.1]:1"} {
		assert.Equal(t, http.StatusOK, ask(here, host), host)
	}
	for _, host := range []string{"", "evil.example", "evil.example:10258", "localhost.evil.example", "192.0.2.1", "127.0.0.1.evil.example"} {
		assert.Equal(t, http.StatusMisdirectedRequest, ask(here, host), host)
		assert.Equal(t, http.StatusOK, ask(&net.TCPAddr{IP: net.IPv4zero, Port: 1}, host), "a node that other machines reach has its own names")
	}
}
