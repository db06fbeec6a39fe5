package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/kube/server"
	"github.com/kubeparts/kubeparts/runtime"
)

// serving is a runtime that serves streams itself, at a URL or not.
type serving struct {
	local
	at   string
	fail error
}

func (s serving) ExecURL(context.Context, string, []string, runtime.StreamOptions) (*url.URL, error) {
	return s.answer()
}

func (s serving) AttachURL(context.Context, string, runtime.StreamOptions) (*url.URL, error) {
	return s.answer()
}

func (s serving) PortForwardURL(context.Context, types.UID, []int32) (*url.URL, error) {
	return s.answer()
}

func (s serving) answer() (*url.URL, error) {
	if s.fail != nil {
		return nil, s.fail
	}
	return url.Parse(s.at)
}

// The exact responses to clients: sv-7, sv-8, sv-9, sv-10.
func TestStreamRejectionsMatchTheKubelets(t *testing.T) {
	rt := &serving{}
	other := webPod()
	other.Name, other.UID = "other", "u0"
	s := newServer(t, func(c *server.Config) { c.Pods, c.Runtime = pods{webPod(), other}, rt })
	const upgrade, spdy = "Connection: Upgrade", "Upgrade: SPDY/3.1"
	socket := []string{upgrade, "Upgrade: websocket", "Sec-WebSocket-Protocol: v4.channel.k8s.io"}
	exhausted := status.Error(codes.ResourceExhausted, "too many")
	for _, c := range []struct {
		rule, method, path string
		headers            []string
		fail               error
		code               int
		text               string
	}{
		{rule: "sv-7", method: "POST", path: "/exec/default/missing/app?output=1", code: 404, text: "pod does not exist"},
		{rule: "sv-7", method: "GET", path: "/exec/other/web/app?output=1", code: 404, text: "pod does not exist"},
		{rule: "sv-7", method: "POST", path: "/attach/default/missing/u1/app?output=1", code: 404, text: "pod does not exist"},
		{rule: "sv-7", method: "POST", path: "/portForward/default/missing", code: 404, text: "pod does not exist"},
		{rule: "sv-7", method: "POST", path: "/run/default/missing/app?cmd=id", code: 404, text: "pod does not exist"},
		{rule: "sv-7: another pod of this name", method: "POST", path: "/portForward/default/web/u2", code: 404, text: "pod not found"},
		{rule: "another pod of this name", method: "POST", path: "/exec/default/web/u2/app?output=1", code: 404, text: "pod not found"},
		{rule: "another pod of this name", method: "GET", path: "/attach/default/web/u2/app?output=1", code: 404, text: "pod not found"},
		{rule: "another pod of this name", method: "POST", path: "/run/default/web/u2/app?cmd=id", code: 404, text: "pod not found"},
		{rule: "the UID is of another pod", method: "POST", path: "/exec/default/other/u1/app?output=1", code: 404, text: "pod not found"},
		{rule: "no such container", method: "POST", path: "/exec/default/web/db?output=1", code: 404, text: `container not found ("db")`},
		{rule: "it does not run", method: "POST", path: "/attach/default/web/over?output=1", code: 404, text: `container not found ("over")`},
		{rule: "sv-8: first of all", method: "POST", path: "/exec/default/missing/app?command=id", code: 400, text: "you must specify at least 1 of stdin, stdout, stderr"},
		{rule: "sv-8: only 1 is on", method: "POST", path: "/attach/default/web/app?output=true", code: 400, text: "you must specify at least 1 of stdin, stdout, stderr"},
		{rule: "sv-8: a terminal has no stderr", method: "POST", path: "/exec/default/web/app?tty=1&error=1", code: 400, text: "you must specify at least 1 of stdin, stdout, stderr"},
		{rule: "sv-9", method: "POST", path: "/exec/default/web/app?output=1", code: 400, text: "Upgrade request required"},
		{rule: "sv-9", method: "GET", path: "/attach/default/web/u1/app?output=1", code: 400, text: "Upgrade request required"},
		{rule: "sv-9", method: "POST", path: "/portForward/default/web/u1", code: 400, text: "Upgrade request required"},
		{rule: "sv-9: no such method", method: "PUT", path: "/exec/default/web/app?output=1", code: 405, text: "Method Not Allowed\n"},
		{
			rule: "sv-9: NotFound", method: "POST", path: "/exec/default/web/app?output=1", headers: []string{upgrade, spdy},
			fail: fmt.Errorf("container c: %w", runtime.ErrNotFound), code: 404, text: "container c: not found",
		},
		{
			rule: "sv-9: ResourceExhausted", method: "POST", path: "/attach/default/web/app?output=1", headers: []string{upgrade, spdy},
			fail: fmt.Errorf("cri: %w", exhausted), code: 429, text: "cri: rpc error: code = ResourceExhausted desc = too many",
		},
		{
			rule: "sv-9: else", method: "POST", path: "/portForward/default/web", headers: []string{upgrade, spdy},
			fail: errors.New("its sandbox is not ready"), code: 500, text: "its sandbox is not ready",
		},
		{rule: "sv-10", method: "GET", path: "/portForward/default/web", headers: socket, code: 400, text: `query parameter "port" is required`},
		{rule: "sv-10", method: "GET", path: "/portForward/default/web?port=", headers: socket, code: 400, text: `query parameter "port" cannot be empty`},
		{rule: "sv-10", method: "GET", path: "/portForward/default/web?port=0", headers: socket, code: 400, text: `port "0" must be > 0`},
		{rule: "sv-10", method: "GET", path: "/portForward/default/web?port=65536", headers: socket, code: 400, text: `unable to parse "65536" as a port: strconv.ParseUint: parsing "65536": value out of range`},
	} {
		t.Run(c.rule+" "+c.method+" "+c.path, func(t *testing.T) {
			rt.fail = c.fail
			w := ask(s, c.method, c.path, "", c.headers...)
			assert.Equal(t, c.code, w.Code)
			assert.Equal(t, c.text, w.Body.String())
			if c.code == http.StatusTooManyRequests {
				assert.Equal(t, "5", w.Header().Get("Retry-After"))
			}
		})
	}
}

// Options may be sent as a form, too (sv-8); one that is too large is rejected.
func TestOptionsMayBeAForm(t *testing.T) {
	s := newServer(t, func(c *server.Config) { c.Pods, c.Runtime = pods{webPod()}, local{} })
	const form = "Content-Type: application/x-www-form-urlencoded"
	assert.Equal(t, "Upgrade request required", ask(s, "POST", "/exec/default/web/app", "output=1&command=id", form).Body.String())
	w := ask(s, "POST", "/exec/default/web/app", "output=1&x="+string(make([]byte, 2<<20)), form)
	assert.Equal(t, http.StatusBadRequest, w.Code)
}

// without is a runtime without optional interfaces.
type without struct{ runtime.Runtime }

func (without) PodStatus(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
	return local{}.PodStatus(ctx, uid)
}

func TestUnsupportedStreamsAreNotFound(t *testing.T) {
	s := newServer(t, func(c *server.Config) { c.Pods, c.Runtime = pods{webPod()}, without{} })
	for path, text := range map[string]string{
		"/exec/default/web/app?output=1":   "exec is not supported by the runtime of this node",
		"/attach/default/web/app?output=1": "attach is not supported by the runtime of this node",
		"/portForward/default/web":         "port forwarding is not supported by the runtime of this node",
		"/run/default/web/app?cmd=id":      "commands are not supported by the runtime of this node",
	} {
		w := ask(s, "POST", path, "", "Connection: Upgrade", "Upgrade: SPDY/3.1")
		assert.Equal(t, http.StatusNotFound, w.Code)
		assert.Equal(t, text, w.Body.String())
	}
	s = newServer(t, func(c *server.Config) { c.Pods = pods{webPod()} })
	assert.Equal(t, http.StatusNotFound, ask(s, "POST", "/exec/default/web/app?output=1", "").Code, "there is no runtime")
	s = newServer(t, func(c *server.Config) { c.Pods, c.Runtime, c.Debugging = pods{webPod()}, local{}, server.Debugging{} })
	w := ask(s, "POST", "/exec/default/web/app?output=1", "")
	assert.Equal(t, http.StatusMethodNotAllowed, w.Code, "sv-6")
	assert.Equal(t, "Debug endpoints are disabled.", w.Body.String())
}

// execing is a runtime that runs commands to completion.
type execing struct {
	local
	t *testing.T
}

func (e execing) Exec(_ context.Context, id string, cmd []string, timeout time.Duration) (runtime.ExecResult, error) {
	assert.Equal(e.t, "local://2", id)
	assert.Zero(e.t, timeout)
	switch cmd[0] {
	case "fail":
		return runtime.ExecResult{ExitCode: 3, Stderr: []byte("oops")}, nil
	case "gone":
		return runtime.ExecResult{}, runtime.ErrNotFound
	}
	return runtime.ExecResult{Stdout: fmt.Appendf(nil, "%q", cmd), Stderr: []byte("!")}, nil
}

func TestRunAnswersWithTheOutput(t *testing.T) {
	s := newServer(t, func(c *server.Config) { c.Pods, c.Runtime = pods{webPod()}, execing{t: t} })
	for _, path := range []string{"/run/default/web/app", "/run/default/web/u1/app"} {
		w := ask(s, "POST", path+"?cmd=ls%20-l%20%20%2Ftmp", "")
		assert.Equal(t, http.StatusOK, w.Code)
		assert.Equal(t, `["ls" "-l" "" "/tmp"]!`, w.Body.String())
		assert.Equal(t, "application/json", w.Header().Get("Content-Type"))
		w = ask(s, "POST", path+"?cmd=fail%20now", "")
		assert.Equal(t, http.StatusInternalServerError, w.Code)
		assert.Equal(t, "command 'fail now' exited with 3: oops", w.Body.String())
		assert.Equal(t, http.StatusNotFound, ask(s, "POST", path+"?cmd=gone", "").Code)
	}
	assert.Equal(t, http.StatusMethodNotAllowed, ask(s, "GET", "/run/default/web/app?cmd=id", "").Code)
}

// The address of a stream that a runtime returns is not trusted.
func TestARuntimeCannotRedirectStreamsToOtherHosts(t *testing.T) {
	for at, want := range map[string]string{
		"http://169.254.169.254/latest": "the runtime has its streams at 169.254.169.254, which is not this machine",
		"http://metadata.internal/x":    "the runtime has its streams at metadata.internal, which is not this machine",
		"http://[2001:db8::1]:80/x":     "the runtime has its streams at 2001:db8::1, which is not this machine",
		"file:///etc/shadow":            `with the scheme "file"`,
		"ftp://127.0.0.1/":              `with the scheme "ftp"`,
	} {
		s := newServer(t, func(c *server.Config) { c.Pods, c.Runtime = pods{webPod()}, serving{at: at} })
		w := ask(s, "POST", "/exec/default/web/app?output=1", "", "Connection: Upgrade", "Upgrade: SPDY/3.1")
		assert.Equal(t, http.StatusInternalServerError, w.Code)
		assert.Contains(t, w.Body.String(), want)
	}
	s := newServer(t, func(c *server.Config) {
		c.Pods, c.Runtime, c.Containers.StreamHosts = pods{webPod()}, serving{at: "http://127.0.0.1:1/secret"}, []string{"127.0.0.1"}
	})
	w := ask(s, "POST", "/exec/default/web/app?output=1", "", "Connection: Upgrade", "Upgrade: SPDY/3.1")
	assert.Equal(t, http.StatusInternalServerError, w.Code)
	assert.Contains(t, w.Body.String(), "streaming server of the runtime at 127.0.0.1:1: ")
	assert.NotContains(t, w.Body.String(), "secret")
}

// The response of a runtime's server that is not a stream is bounded, and the clients'
// credentials are not passed on to it.
func TestARuntimesServerIsNotTrusted(t *testing.T) {
	var got http.Header
	answer := http.StatusNotFound
	there := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		if answer == http.StatusFound {
			http.Redirect(w, r, "http://169.254.169.254/", answer)
			return
		}
		w.Header().Set("Set-Cookie", "a=b")
		w.WriteHeader(answer)
		_, _ = w.Write(make([]byte, 1<<20))
	})
	s := newServer(t, func(c *server.Config) {
		c.Pods, c.Runtime, c.Authenticator = pods{webPod()}, serving{at: there}, named{}
	})
	as := func() (int, http.Header, int) {
		w := ask(s, "POST", "/exec/default/web/app?output=1", "", "Connection: Upgrade", "Upgrade: SPDY/3.1",
			"X-Stream-Protocol-Version: v4.channel.k8s.io", "Authorization: Bearer secret", "Cookie: secret", "X-Remote-User: root", "User: ann")
		body, err := io.ReadAll(w.Body)
		require.NoError(t, err)
		return w.Code, w.Header(), len(body)
	}
	code, headers, n := as()
	assert.Equal(t, http.StatusNotFound, code)
	assert.Equal(t, 64<<10, n)
	assert.Empty(t, headers.Get("Set-Cookie"))
	assert.Equal(t, "v4.channel.k8s.io", got.Get("X-Stream-Protocol-Version"))
	assert.Equal(t, "SPDY/3.1", got.Get("Upgrade"))
	for _, secret := range []string{"Authorization", "Cookie", "X-Remote-User", "User", "X-Forwarded-For"} {
		assert.NotContains(t, got, secret)
	}
	for _, answer = range []int{http.StatusOK, http.StatusFound} {
		code, _, _ = as()
		assert.Equal(t, http.StatusInternalServerError, code)
	}
}
