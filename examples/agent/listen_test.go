package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnAddressToListenAtIsSaidInFull(t *testing.T) {
	for addr, refused := range map[string]string{
		"127.0.0.1:10258": "", "localhost:0": "", "[::1]:1": "", "0.0.0.0:10258": "", "192.0.2.1:80": "",
		":10258": "names no address: say 127.0.0.1:10258, or 0.0.0.0:10258 if everybody",
		"":       "want an address and a port such as 127.0.0.1:10258",
		"host":   "want an address and a port", "10258": "want an address and a port",
	} {
		_, err := parseFlags([]string{"--manifests=x", "--listen=" + addr})
		if refused == "" {
			require.NoError(t, err, addr)
			continue
		}
		require.ErrorContains(t, err, "--listen=")
		require.ErrorContains(t, err, refused)
	}
}

func TestWhoOpensThePageToOthersIsWarned(t *testing.T) {
	assert.Empty(t, openToAll(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}))
	assert.Empty(t, openToAll(&net.TCPAddr{IP: net.IPv6loopback, Port: 1}))
	for _, ip := range []net.IP{net.IPv4zero, net.IPv6unspecified, net.IPv4(192, 0, 2, 1), nil} {
		assert.Contains(t, openToAll(&net.TCPAddr{IP: ip, Port: 1}), "warning: everybody who reaches")
	}
}

// A web page may have its name lead to this machine, and the browser of somebody on it
// ask us in that name.
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
		assert.Equal(t, http.StatusOK, ask(&net.TCPAddr{IP: net.IPv4zero, Port: 1}, host), "who opens it to all has names of his own")
	}
}
