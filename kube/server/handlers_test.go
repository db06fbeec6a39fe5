package server_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/auth"
	"github.com/kubeparts/kubeparts/kube/server"
)

func TestHandlersAreAuthorizedAsNodesProxy(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Method, " ", r.URL.Path) })
	s := newServer(t, func(c *server.Config) {
		c.Authenticator, c.Authorizer = named{}, may{"ann": {"get nodes/proxy"}, "bob": {"get nodes/metrics", "get nodes/stats", "create nodes/proxy"}}
		c.Handlers = map[string]http.Handler{"/example": h, "/tree/": h}
		c.Debugging = server.Debugging{} // they are not debugging handlers
	})
	for _, tc := range []struct {
		user, method, path string
		code               int
		body               string
	}{
		{"ann", "GET", "/example", 200, "GET /example"},
		{"ann", "GET", "/tree/a/b", 200, "GET /tree/a/b"},
		{"ann", "GET", "/example/a", 404, ""},
		{"ann", "POST", "/example", 403, ""},
		{"bob", "GET", "/example", 403, ""},
		{"bob", "POST", "/example", 200, "POST /example"},
		{"", "GET", "/example", 401, ""},
	} {
		w := ask(s, tc.method, tc.path, "", "User: "+tc.user)
		assert.Equal(t, tc.code, w.Code, "%+v", tc)
		if tc.body != "" {
			assert.Equal(t, tc.body, w.Body.String())
		}
	}
	for _, open := range []http.Handler{s.ReadOnly(), s.Healthz()} {
		assert.Equal(t, 404, ask(open, "GET", "/example", "").Code, "listeners without authentication do not serve them")
	}
}

func TestHandlersMustNotHaveReservedPaths(t *testing.T) {
	for _, path := range []string{
		"", "/", "example", "/pods", "/pods/", "/exec/x", "/metrics/x", "/healthz", "/debug/x", "/logs/", "/configz", "/a b", "/{x}", "GET /example", "host/example",
	} {
		_, err := server.New(server.Config{
			NodeName: "n1", Authenticator: auth.Anonymous{}, Authorizer: auth.AlwaysAllow{}, Pods: pods{},
			Handlers: map[string]http.Handler{path: http.NotFoundHandler()},
		})
		require.ErrorContains(t, err, fmt.Sprintf("server: Config.Handlers: %q is a path of the kubelet's API, is invalid, or has no handler", path), path)
	}
	_, err := server.New(server.Config{
		NodeName: "n1", Authenticator: auth.Anonymous{}, Authorizer: auth.AlwaysAllow{}, Pods: pods{}, Handlers: map[string]http.Handler{"/example": nil},
	})
	assert.ErrorContains(t, err, "server: Config.Handlers")
}
