package runtime_test

import (
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime"
)

func TestStreamsAreOnThisMachine(t *testing.T) {
	for raw, want := range map[string]string{
		"http://127.0.0.1:1/secret":     "",
		"https://[::1]:1/secret":        "",
		"http://localhost/secret":       "",
		"http://runtime.internal:80/x":  "",
		"http://169.254.169.254/secret": "the runtime has its streams at 169.254.169.254, which is not this machine",
		"http://metadata.internal/x":    "the runtime has its streams at metadata.internal, which is not this machine",
		"http://localhost.evil/x":       "the runtime has its streams at localhost.evil, which is not this machine",
		"http://127.0.0.1@10.9.8.7/x":   "the runtime has its streams at 10.9.8.7, which is not this machine",
		"http://2130706433/x":           "the runtime has its streams at 2130706433, which is not this machine",
		"http:///x":                     "the runtime has its streams at , which is not this machine",
		"unix:///run/secret":            `the runtime has its streams at a URL with the scheme "unix", not http or https`,
	} {
		u, err := url.Parse(raw)
		require.NoError(t, err)
		err = runtime.CheckStreamHost(u, []string{"runtime.internal"})
		if want == "" {
			assert.NoError(t, err, raw)
			continue
		}
		assert.EqualError(t, err, want, raw)
	}
	own, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok {
			assert.NoError(t, runtime.CheckStreamHost(&url.URL{Scheme: "http", Host: net.JoinHostPort(n.IP.String(), "80")}, nil))
		}
	}
}
