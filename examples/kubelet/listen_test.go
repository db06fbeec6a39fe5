package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhereTheStatusPageIs(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "kubelet.yaml")
	require.NoError(t, os.WriteFile(config, []byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"), 0o600))
	loopback, socket := pageAddress{"tcp", "127.0.0.1:10258"}, pageAddress{"unix", "/r/agent.sock"}
	for _, c := range []struct {
		args string
		want pageAddress
	}{
		{"--manifests=x", loopback},
		{"--manifests=x --runtime=unix:///sock", loopback},
		{"--manifests=x --config=" + config, socket},
		{"--manifests=x --config-dir=" + dir, socket},
		{"--kubeconfig=x --runtime=unix:///sock", socket},
		{"--in-cluster --runtime=unix:///sock", socket},
		{"--kubeconfig=x --listen=127.0.0.1:10258", loopback},
		{"--kubeconfig=x --listen=", pageAddress{}},
		{"--manifests=x --listen=", pageAddress{}},
		{"--manifests=x --listen=unix:///run/./page.sock", pageAddress{"unix", "/run/page.sock"}},
		{"--manifests=x --listen=localhost:0", pageAddress{"tcp", "localhost:0"}},
		{"--manifests=x --listen=[::1]:1", pageAddress{"tcp", "[::1]:1"}},
		{"--manifests=x --listen=0.0.0.0:10258", pageAddress{"tcp", "0.0.0.0:10258"}},
	} {
		o, err := parseFlags(append(strings.Fields(c.args), "--root=/r"))
		require.NoError(t, err, c.args)
		assert.Equal(t, c.want, o.page, c.args)
		assert.Empty(t, o.warnings, c.args)
	}
	for text, refused := range map[string]string{
		":10258":          "names no address: say 127.0.0.1:10258, or 0.0.0.0:10258 if everybody",
		"none":            "want an address and a port such as 127.0.0.1:10258",
		"10258":           "want an address and a port",
		"unix:agent.sock": "want an absolute path such as unix:///",
		"unix://x/y":      "want an absolute path such as unix:///",
		"unix://":         "want an absolute path such as unix:///",
	} {
		_, err := parseFlags([]string{"--manifests=x", "--listen=" + text})
		require.ErrorContains(t, err, "--listen=")
		require.ErrorContains(t, err, refused)
	}
	o, err := parseFlags([]string{"--kubeconfig=x", "--root=/" + strings.Repeat("r", 120)})
	require.NoError(t, err)
	assert.Equal(t, pageAddress{}, o.page)
	require.Len(t, o.warnings, 1)
	assert.Contains(t, o.warnings[0], "no status page: the path of a socket in --root=/rr")
}

func TestWhoOpensThePageToOthersIsWarned(t *testing.T) {
	for _, addr := range []net.Addr{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, &net.TCPAddr{IP: net.IPv6loopback, Port: 1}, &net.UnixAddr{Name: "/s", Net: "unix"}} {
		assert.Empty(t, openToAll(addr))
	}
	for _, ip := range []net.IP{net.IPv4zero, net.IPv6unspecified, net.IPv4(192, 0, 2, 1), nil} {
		assert.Contains(t, openToAll(&net.TCPAddr{IP: ip, Port: 1}), "warning: everybody who reaches")
	}
}

func TestShutdownByHTTPNeedsALocalAddress(t *testing.T) {
	for listen, says := range map[string]string{
		"":              "there is no --listen",
		"0.0.0.0:10258": "anybody could end the pods",
	} {
		a := &assembly{opts: options{root: t.TempDir(), shutdown: shutdownOptions{on: "http"}}}
		a.opts.page, _ = parseListen(listen)
		_, err := a.triggers(new(departure), true)
		require.ErrorContains(t, err, says)
	}
	for _, listen := range []string{"127.0.0.1:10258", "unix:///run/s"} {
		a := &assembly{opts: options{root: t.TempDir(), shutdown: shutdownOptions{on: "http"}}}
		a.opts.page, _ = parseListen(listen)
		_, err := a.triggers(new(departure), true)
		require.NoError(t, err)
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
