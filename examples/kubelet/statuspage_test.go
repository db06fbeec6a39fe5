package main

import (
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
	loopback, socket := "127.0.0.1:10258", "unix:///r/agent.sock"
	for _, c := range []struct {
		args string
		want string
	}{
		{"--manifests=x", loopback},
		{"--manifests=x --runtime=unix:///sock", loopback},
		{"--manifests=x --config=" + config, socket},
		{"--manifests=x --config-dir=" + dir, socket},
		{"--kubeconfig=x --runtime=unix:///sock", socket},
		{"--in-cluster --runtime=unix:///sock", socket},
		{"--kubeconfig=x --listen=127.0.0.1:10258", loopback},
		{"--kubeconfig=x --listen=", ""},
		{"--manifests=x --listen=", ""},
		{"--manifests=x --listen=unix:///run/./page.sock", "unix:///run/./page.sock"},
		{"--manifests=x --listen=localhost:0", "localhost:0"},
		{"--manifests=x --listen=[::1]:1", "[::1]:1"},
		{"--manifests=x --listen=0.0.0.0:10258", "0.0.0.0:10258"},
	} {
		o, err := parseFlags(append(strings.Fields(c.args), "--root=/r"))
		require.NoError(t, err, c.args)
		assert.Equal(t, c.want, o.page, c.args)
		assert.Empty(t, o.warnings, c.args)
	}
	for text, refused := range map[string]string{
		":10258":          "has no host: use 127.0.0.1:10258, or 0.0.0.0:10258",
		"none":            "not HOST:PORT, such as 127.0.0.1:10258",
		"10258":           "not HOST:PORT",
		"unix:agent.sock": "not an absolute path such as unix:///",
		"unix://x/y":      "not an absolute path such as unix:///",
		"unix://":         "not an absolute path such as unix:///",
	} {
		_, err := parseFlags([]string{"--manifests=x", "--listen=" + text})
		require.ErrorContains(t, err, "--listen: ")
		require.ErrorContains(t, err, refused)
	}
	o, err := parseFlags([]string{"--kubeconfig=x", "--root=/" + strings.Repeat("r", 120)})
	require.NoError(t, err)
	assert.Equal(t, "", o.page)
	require.Len(t, o.warnings, 1)
	assert.Contains(t, o.warnings[0], "no status page: --root=/rr")
}

func TestShutdownByHTTPNeedsALocalAddress(t *testing.T) {
	for listen, says := range map[string]string{
		"":              "there is no --listen",
		"0.0.0.0:10258": "anybody could end the pods",
	} {
		a := &assembly{opts: options{root: t.TempDir(), shutdown: shutdownOptions{on: "http"}}}
		a.opts.page = listen
		_, err := a.triggers(new(departure), true)
		require.ErrorContains(t, err, says)
	}
	for _, listen := range []string{"127.0.0.1:10258", "unix:///run/s"} {
		a := &assembly{opts: options{root: t.TempDir(), shutdown: shutdownOptions{on: "http"}}}
		a.opts.page = listen
		_, err := a.triggers(new(departure), true)
		require.NoError(t, err)
	}
}
