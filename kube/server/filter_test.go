package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/auth"
	"github.com/kubeparts/kubeparts/kube/server"
)

// pods are the pods of a node.
type pods []*v1.Pod

func (p pods) Pods() []*v1.Pod { return p }

func (p pods) Pod(namespace, name string) (*v1.Pod, bool) {
	for _, pod := range p {
		if pod.Namespace == namespace && pod.Name == name {
			return pod, true
		}
	}
	return nil, false
}

// named authenticates by a header, for tests.
type named struct{}

func (named) Authenticate(r *http.Request) (*auth.User, error) {
	switch name := r.Header.Get("User"); name {
	case "":
		return nil, nil
	case "crowded":
		return nil, errors.Join(auth.ErrUnauthorized, auth.ErrTooManyReviews)
	case "broken":
		return nil, errors.New("the API server is away")
	default:
		return &auth.User{Name: name}, nil
	}
}

// may maps a user to the permitted actions: "get nodes/proxy".
type may map[string][]string

func (m may) Authorize(_ context.Context, user *auth.User, what auth.Attributes) (auth.Decision, error) {
	if user.Name == "many" {
		return auth.Decision{}, auth.ErrTooManyReviews
	}
	if user.Name == "unlucky" {
		return auth.Decision{}, errors.New("the API server is away")
	}
	for _, allowed := range m[user.Name] {
		if allowed == what.Verb+" "+what.Resource+"/"+what.Subresource && what.Name == "n1" && what.Version == "v1" && what.Group == "" {
			return auth.Decision{Allowed: true}, nil
		}
	}
	return auth.Decision{Reason: "no role allows it"}, nil
}

// all switches everything on.
var all = server.Debugging{Handlers: true, SystemLogs: true, NodeLogQuery: true, Profiling: true, Flags: true}

// newServer returns a server without access control, unless change sets it.
func newServer(t testing.TB, change func(*server.Config)) *server.Server {
	t.Helper()
	cfg := server.Config{NodeName: "n1", Authenticator: auth.Anonymous{}, Authorizer: auth.AlwaysAllow{}, Pods: pods{}, Debugging: all}
	if change != nil {
		change(&cfg)
	}
	s, err := server.New(cfg)
	require.NoError(t, err)
	return s
}

// ask makes a request, with headers as "Name: value".
func ask(h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://n1"+path, strings.NewReader(body))
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// The attributes of a request: sv-14, sv-15, sv-16, sv-18, sv-19.
func TestARequestIsAuthorisedAs(t *testing.T) {
	for _, c := range []struct{ rule, method, path, want string }{
		{"sv-14", "GET", "/anything", "get proxy"},
		{"sv-14", "POST", "/anything", "create proxy"},
		{"sv-14", "PUT", "/debug/flags/v", "update proxy"},
		{"sv-14", "PATCH", "/anything", "patch proxy"},
		{"sv-14", "DELETE", "/anything", "delete proxy"},
		{"sv-14", "HEAD", "/metrics", "get metrics"},
		{"sv-14: no verb", "OPTIONS", "/metrics", ""},
		{"sv-14: no verb", "CONNECT", "/metrics/../exec/a/b/c", ""},
		{"sv-14: no verb", "", "/x", "get proxy"}, // an empty method is GET
		{"sv-15", "GET", "/stats", "get stats"},
		{"sv-15", "GET", "/stats/summary", "get stats"},
		{"sv-15", "POST", "/stats/summary", "create stats"},
		{"sv-15", "GET", "/metrics/cadvisor", "get metrics"},
		{"sv-15", "GET", "/logs/", "get log"},
		{"sv-15", "GET", "/logs/containers/x.log", "get log"},
		{"sv-15", "POST", "/checkpoint/ns/pod/c", "create checkpoint"},
		{"sv-15", "GET", "/containerLogs/ns/pod/c", "get proxy"},
		{"sv-15", "GET", "/debug/pprof/heap", "get proxy"},
		{"sv-15", "GET", "/", "get proxy"},
		{"sv-16", "GET", "/pods", "get pods|get proxy"},
		{"sv-16", "GET", "/pods/", "get pods|get proxy"},
		{"sv-16", "GET", "/runningpods/", "get pods|get proxy"},
		{"sv-16", "GET", "/healthz", "get healthz|get proxy"},
		{"sv-16", "GET", "/healthz/syncloop", "get healthz|get proxy"},
		{"sv-16", "GET", "/configz", "get configz|get proxy"},
		{"sv-15", "GET", "/statusz", "get statusz"},
		{"sv-15", "GET", "/flagz", "get configz"},
		{"sv-18", "GET", "/statsx", "get proxy"},
		{"sv-18", "GET", "/stats2/summary", "get proxy"},
		{"sv-18", "GET", "/podsx", "get proxy"},
		{"sv-18", "GET", "/metricsexec", "get proxy"},
		{"sv-18", "GET", "/Metrics", "get proxy"},
		{"sv-19", "GET", "/exec/ns/pod/c?command=id", "create proxy"},
		{"sv-19", "POST", "/exec/ns/pod/c?command=id", "create proxy"},
		{"sv-19", "GET", "/exec", "create proxy"},
		{"sv-19", "GET", "/attach/ns/pod/c", "create proxy"},
		{"sv-19", "GET", "/portForward/ns/pod", "create proxy"},
		{"sv-19", "GET", "/run/ns/pod/c", "create proxy"},
		{"sv-19", "PUT", "/exec/ns/pod/c", ""},
		{"sv-19", "HEAD", "/exec/ns/pod/c", ""},
		{"sv-19: written otherwise", "GET", "/%65xec/ns/pod/c", "create proxy"},
		{"sv-19: a slash that is none", "GET", "/exec%2Fns/pod/c", "create proxy"},
	} {
		t.Run(c.rule+" "+c.method+" "+c.path, func(t *testing.T) {
			var got []string
			r := httptest.NewRequest(c.method, "http://n1"+c.path, nil)
			for _, a := range server.Attributes("n1", r) {
				assert.Equal(t, []string{"", "v1", "nodes", "n1", "", ""}, []string{a.Group, a.Version, a.Resource, a.Name, a.Namespace, a.Path})
				got = append(got, a.Verb+" "+a.Subresource)
			}
			assert.Equal(t, c.want, strings.Join(got, "|"))
		})
	}
}

// sv-13, sv-17: the messages of rejections.
func TestRejectionsMatchTheKubelets(t *testing.T) {
	s := newServer(t, func(c *server.Config) {
		c.Authenticator, c.Authorizer = auth.Chain{named{}}, may{
			"reader": {"get nodes/proxy"}, "writer": {"create nodes/proxy"}, "prometheus": {"get nodes/metrics"}, "lister": {"get nodes/pods"},
		}
		c.Node.Metrics = map[string]http.Handler{"/metrics": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1\n") })}
	})
	for _, c := range []struct {
		what, user, method, path string
		code                     int
		body                     string
	}{
		{"sv-13: anonymous", "", "GET", "/pods", 401, "Unauthorized"},
		{"sv-13: anonymous, unknown path", "", "GET", "/nothing", 401, "Unauthorized"},
		{"sv-13: no token review possible", "broken", "GET", "/pods", 401, "Unauthorized"},
		{"too many token reviews", "crowded", "GET", "/pods", 429, "Too Many Requests\n"},
		{"too many access reviews", "many", "GET", "/pods", 429, "Too Many Requests\n"},
		{"sv-17: forbidden", "nobody", "GET", "/pods", 403, "Forbidden (user=nobody, verb=get, resource=nodes, subresource(s)=[pods proxy])\n"},
		{"sv-17: forbidden", "prometheus", "GET", "/stats/summary", 403, "Forbidden (user=prometheus, verb=get, resource=nodes, subresource(s)=[stats])\n"},
		{"sv-17: no decision", "unlucky", "GET", "/pods", 500, "Authorization error (user=unlucky, verb=get, resource=nodes, subresource=proxy)"},
		{"sv-16: the narrow one", "lister", "GET", "/pods", 200, `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}`},
		{"sv-16: the broad one", "reader", "GET", "/pods", 200, `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}`},
		{"sv-15: not that of another", "reader", "GET", "/metrics", 403, "Forbidden (user=reader, verb=get, resource=nodes, subresource(s)=[metrics])\n"},
		{"sv-15", "prometheus", "GET", "/metrics", 200, "up 1\n"},
		{"sv-19: a reader", "reader", "GET", "/exec/ns/pod/c?command=id&output=1", 403, "Forbidden (user=reader, verb=create, resource=nodes, subresource(s)=[proxy])\n"},
		{"sv-14: a method without a verb", "reader", "OPTIONS", "/pods", 405, "Method Not Allowed\n"},
		{"a way round", "reader", "GET", "/metrics/../exec/ns/pod/c", 400, "the path is not canonical\n"},
		{"a way round", "reader", "GET", "//exec/ns/pod/c", 400, "the path is not canonical\n"},
		{"a way round, written otherwise", "reader", "GET", "/metrics/%2e%2e/exec/ns/pod/c", 400, "the path is not canonical\n"},
		{"a way round, written otherwise", "reader", "GET", "/metrics%2f..%2fexec/ns/pod/c", 400, "the path is not canonical\n"},
		{"an unknown path", "reader", "GET", "/nothing", 404, "404 page not found\n"},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := ask(s, c.method, c.path, "", "User: "+c.user)
			assert.Equal(t, c.code, w.Code)
			assert.Equal(t, c.body, w.Body.String())
			if c.code == http.StatusTooManyRequests {
				assert.Equal(t, "1", w.Header().Get("Retry-After"))
			}
		})
	}
}

// `get nodes/proxy` alone opens no stream, whatever the method.
func TestAReaderCannotOpenAStream(t *testing.T) {
	s := newServer(t, func(c *server.Config) { c.Authenticator, c.Authorizer = named{}, may{"reader": {"get nodes/proxy"}} })
	for _, path := range []string{"/exec/ns/pod/c", "/exec/ns/pod/uid/c", "/attach/ns/pod/c", "/portForward/ns/pod", "/run/ns/pod/c"} {
		for _, headers := range [][]string{
			{"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Protocol: v5.channel.k8s.io", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="},
			{"Connection: Upgrade", "Upgrade: SPDY/3.1"},
			{"X-HTTP-Method-Override: POST"},
			{},
		} {
			for _, method := range []string{"GET", "POST"} {
				w := ask(s, method, path+"?command=id&output=1&port=80", "", append(headers, "User: reader")...)
				assert.Equal(t, http.StatusForbidden, w.Code, "%s %s %v", method, path, headers)
			}
		}
	}
}

// Requests that are not authenticated cannot fill the log.
func TestRefusedRequestsAreLoggedWithLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := newServer(t, func(c *server.Config) {
			c.Authenticator, c.Authorizer, c.Logger = auth.Chain{named{}}, may{}, slog.New(slog.NewTextHandler(&log, nil))
		})
		for second := 1; second <= 2; second++ {
			for i := range 50 {
				r := httptest.NewRequest(http.MethodGet, "/"+strings.Repeat("x", 1<<20), nil)
				if i%2 == 0 {
					r.Header.Set("User", strings.Repeat("u", 1<<20))
				}
				s.ServeHTTP(httptest.NewRecorder(), r)
			}
			assert.Equal(t, 10*second, strings.Count(log.String(), "Refused request"), "after second %d", second)
			time.Sleep(time.Second)
		}
		assert.Less(t, log.Len(), 100<<10, "of 100 MiB")
		assert.Contains(t, log.String(), "Refused request: not authenticated")
		assert.Contains(t, log.String(), "Refused request: forbidden")
	})
}

func TestNewRequiresItsConfig(t *testing.T) {
	good := server.Config{NodeName: "n", Authenticator: auth.Anonymous{}, Authorizer: auth.AlwaysAllow{}, Pods: pods{}}
	for want, change := range map[string]func(*server.Config){
		"Config.NodeName is empty":    func(c *server.Config) { c.NodeName = "" },
		"Config.Authenticator is nil": func(c *server.Config) { c.Authenticator = nil },
		"Config.Authorizer is nil":    func(c *server.Config) { c.Authorizer = nil },
		"Config.Pods is nil":          func(c *server.Config) { c.Pods = nil },
		`"/exec" is not a path below`: func(c *server.Config) { c.Node.Metrics = map[string]http.Handler{"/exec": http.NotFoundHandler()} },
		`"/metrics/../x" is not a path`: func(c *server.Config) {
			c.Node.Metrics = map[string]http.Handler{"/metrics/../x": http.NotFoundHandler()}
		},
		`"/metrics/" is not a path`: func(c *server.Config) { c.Node.Metrics = map[string]http.Handler{"/metrics/": http.NotFoundHandler()} },
		`"/metrics/{x}" is not a path`: func(c *server.Config) {
			c.Node.Metrics = map[string]http.Handler{"/metrics/{x}": http.NotFoundHandler()}
		},
		`".." is a duplicate name`: func(c *server.Config) {
			c.Node.Checks = []server.Check{{Name: "..", Check: func() error { return nil }}}
		},
		`"ping" is a duplicate name`: func(c *server.Config) {
			c.Node.Checks = []server.Check{{Name: "ping", Check: func() error { return nil }}}
		},
		`"x" is a duplicate name`: func(c *server.Config) { c.Node.Checks = []server.Check{{Name: "x"}} },
	} {
		cfg := good
		change(&cfg)
		_, err := server.New(cfg)
		assert.ErrorContains(t, err, want)
	}
}
