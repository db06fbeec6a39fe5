package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/auth"
	"github.com/kubeparts/kubeparts/kube/server"
)

// questions records the requests for authorization. All are allowed.
type questions struct{ what []auth.Attributes }

func (a *questions) Authorize(_ context.Context, _ *auth.User, what auth.Attributes) (auth.Decision, error) {
	a.what = append(a.what, what)
	return auth.Decision{Allowed: true}, nil
}

// The path that is authorized is the path that is served, however it is written
// (sv-15, sv-18): a handler sees the first segment that was authorized.
func FuzzWhatIsServedIsWhatWasAuthorised(f *testing.F) {
	for _, path := range []string{
		"/metrics", "/metrics/x", "/%6detrics", "/metrics%2Fx", "/metrics/%78", "//metrics", "/%2Fmetrics", "/stats/../metrics", "/stats/%2e%2e/metrics",
		"/stats%2F..%2Fmetrics", "/metrics/%2e", "/metrics/..;/stats", "/logs/%2e%2e/metrics", "/logs/..%2fmetrics", "/logs/a%2Fb", "/logs%2Fa", "/healthz%2F", "/metrics%00",
		"/metrics/", "/metrics//", "/metrics%3F", "/metrics%23", "/METRICS", "/./metrics", "*", "/%252e%252e/metrics", "\\metrics", "/metrics\\..\\logs",
	} {
		f.Add("GET", path)
	}
	f.Add("HEAD", "/metrics")
	f.Add("CONNECT", "/metrics")
	f.Add("get", "/metrics")
	who := new(questions)
	served := ""
	handler := func(name string) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served = name })
	}
	logs := fstest.MapFS{"a": {Data: []byte("a file of logs")}}
	s, err := server.New(server.Config{
		NodeName: "n1", Authenticator: auth.Anonymous{}, Authorizer: who, Pods: pods{}, Debugging: all, Node: server.Node{Logs: logs,
			Metrics: map[string]http.Handler{"/metrics": handler("metrics"), "/metrics/x": handler("metrics")},
			Checks:  []server.Check{{Name: "served", Check: func() error { served = "healthz"; return nil }}}},
	})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, method, path string) {
		u, err := url.ParseRequestURI(path)
		if err != nil || u.Host != "" {
			return
		}
		who.what, served = nil, ""
		r := &http.Request{Method: method, URL: u, RequestURI: path, Host: "n1", Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r.WithContext(t.Context()))
		if served == "" && strings.Contains(w.Body.String(), "a file of logs") {
			served = "log"
		}
		if served == "" {
			return
		}
		var subresources []string
		for _, what := range who.what {
			subresources = append(subresources, what.Subresource)
		}
		assert.Contains(t, subresources, served, "%s %s", method, path)
	})
}
