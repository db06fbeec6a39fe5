package server_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/kube/server"
)

func TestRequestsAreTracedAfterAuthorization(t *testing.T) {
	type key struct{}
	var traced []string
	s := newServer(t, func(c *server.Config) {
		c.Authenticator, c.Authorizer = named{}, may{"ann": {"get nodes/proxy", "get nodes/pods"}}
		c.Handlers = map[string]http.Handler{"/example": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprint(w, r.Context().Value(key{}))
		})}
		c.Trace = func(r *http.Request, route, serverType string) (context.Context, func(int)) {
			return context.WithValue(r.Context(), key{}, "traced"), func(code int) {
				traced = append(traced, fmt.Sprintf("%s %q %d", serverType, route, code))
			}
		}
	})
	assert.Equal(t, "traced", ask(s, "GET", "/example", "", "User: ann").Body.String())
	for _, path := range []string{"/pods", "/pods/", "/none", "/containerLogs/a/b/c"} {
		ask(s, "GET", path, "", "User: ann")
		ask(s, "GET", path, "", "User: bob") // 403
		ask(s, "GET", path, "")              // 401
	}
	ask(s.ReadOnly(), "GET", "/pods", "")
	ask(s.ReadOnly(), "GET", "/containerLogs/a/b/c", "")
	assert.Equal(t, []string{
		`readwrite "/example" 200`, `readwrite "/pods" 200`, `readwrite "/pods" 200`, `readwrite "" 404`,
		`readwrite "/containerLogs/{namespace}/{pod}/{container}" 404`,
		`readonly "/pods" 200`, `readonly "" 405`,
	}, traced)
}
