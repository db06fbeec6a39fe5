package prober_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

// serving starts a server with the handler h, and returns it with the target of a
// probe of it.
func serving(t *testing.T, h http.HandlerFunc) (*httptest.Server, prober.Target) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server, targetOf(t, server.URL)
}

// targetOf returns a target whose pod is the server of a URL.
func targetOf(t *testing.T, server string) prober.Target {
	t.Helper()
	u, err := url.Parse(server)
	require.NoError(t, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(t, err)
	return prober.Target{
		Pod:       &v1.Pod{},
		Container: &v1.Container{Name: "web", Ports: []v1.ContainerPort{{Name: "http", ContainerPort: int32(port)}}},
		PodIP:     u.Hostname(),
		Timeout:   20 * time.Second,
		Probe: &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{
			Port: intstr.FromInt(port), Scheme: v1.URIScheme(strings.ToUpper(u.Scheme)),
		}}},
	}
}

// get runs an HTTPGet and returns its outcome.
func get(t *testing.T, to prober.Target) prober.Outcome {
	t.Helper()
	out, err := prober.HTTPGet{}.Probe(t.Context(), to)
	require.NoError(t, err)
	return out
}

// An echo responds with the request, as received.
func echo(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s %s host=%s", r.Method, r.RequestURI, r.Host)
	for _, name := range []string{"User-Agent", "Accept", "Accept-Encoding", "Connection", "X-Two"} {
		if values, ok := r.Header[name]; ok {
			fmt.Fprintf(w, " %s=%s", name, strings.Join(values, ","))
		}
	}
}

func TestTheRequestOfAGet(t *testing.T) {
	server, plain := serving(t, echo)
	at := server.Listener.Addr().String()
	const usual = " User-Agent=" + prober.UserAgent + " Accept=*/*"
	for name, c := range map[string]struct {
		change func(to *prober.Target, g *v1.HTTPGetAction)
		want   string
	}{
		"GET, of no keep-alive and no compression prober-40 prober-41 prober-46": {
			func(*prober.Target, *v1.HTTPGetAction) {}, "GET / host=" + at + usual + " Connection=close"},
		"http by default prober-40": {
			func(_ *prober.Target, g *v1.HTTPGetAction) { g.Scheme = "" }, "GET / host=" + at + usual + " Connection=close"},
		"host before pod IP prober-41": {
			func(to *prober.Target, g *v1.HTTPGetAction) { g.Host, to.PodIP = to.PodIP, "192.0.2.1" }, "GET / host=" + at + usual + " Connection=close"},
		"a named port prober-42": {
			func(_ *prober.Target, g *v1.HTTPGetAction) { g.Port = intstr.FromString("http") }, "GET / host=" + at + usual + " Connection=close"},
		"a number in a string prober-42": {
			func(_ *prober.Target, g *v1.HTTPGetAction) { g.Port = intstr.FromString(g.Port.String()) }, "GET / host=" + at + usual + " Connection=close"},
		"a query prober-43": {
			func(_ *prober.Target, g *v1.HTTPGetAction) { g.Path = "/healthz?full=1&a=%20b" }, "GET /healthz?full=1&a=%20b host=" + at + usual + " Connection=close"},
		"a path without its slash prober-43": {
			func(_ *prober.Target, g *v1.HTTPGetAction) { g.Path = "healthz" }, "GET /healthz host=" + at + usual + " Connection=close"},
		"a path that is no URL prober-43": {
			func(_ *prober.Target, g *v1.HTTPGetAction) { g.Path = "/%zz?a" }, "GET /%25zz%3Fa host=" + at + usual + " Connection=close"},
		"a path that looks like a URL prober-43": {
			func(_ *prober.Target, g *v1.HTTPGetAction) { g.Path = "http://192.0.2.1:1/x" }, "GET /x host=" + at + usual + " Connection=close"},
		"an escaped slash prober-43": {
			func(_ *prober.Target, g *v1.HTTPGetAction) { g.Path = "/a%2Fb" }, "GET /a%2Fb host=" + at + usual + " Connection=close"},
		"headers, repeated and in any case prober-44": {
			func(_ *prober.Target, g *v1.HTTPGetAction) {
				g.HTTPHeaders = []v1.HTTPHeader{{Name: "x-two", Value: "1"}, {Name: "X-TWO", Value: "2"}}
			}, "GET / host=" + at + usual + " Connection=close X-Two=1,2"},
		"Host prober-44": {
			func(_ *prober.Target, g *v1.HTTPGetAction) {
				g.HTTPHeaders = []v1.HTTPHeader{{Name: "host", Value: "example.org"}}
			}, "GET / host=example.org" + usual + " Connection=close"},
		"custom User-Agent and Accept prober-45": {
			func(_ *prober.Target, g *v1.HTTPGetAction) {
				g.HTTPHeaders = []v1.HTTPHeader{{Name: "user-agent", Value: "me"}, {Name: "Accept", Value: "text/html"}}
			}, "GET / host=" + at + " User-Agent=me Accept=text/html Connection=close"},
		"without User-Agent and Accept prober-45": {
			func(_ *prober.Target, g *v1.HTTPGetAction) {
				g.HTTPHeaders = []v1.HTTPHeader{{Name: "User-Agent"}, {Name: "Accept"}}
			}, "GET / host=" + at + " Connection=close"},
	} {
		t.Run(name, func(t *testing.T) {
			to := plain
			action := *plain.Probe.HTTPGet
			c.change(&to, &action)
			to.Probe = &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: &action}}
			assert.Equal(t, prober.Outcome{Result: runtime.ProbeSuccess, Output: c.want}, get(t, to))
		})
	}
}

func TestTheProxyOfTheAgentIsNotUsed(t *testing.T) { // prober-46
	_, to := serving(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.RequestURI) })
	t.Setenv("HTTP_PROXY", "http://192.0.2.1:3128")
	assert.Equal(t, "/", get(t, to).Output)
}

func TestTheStatusCodeDecides(t *testing.T) { // prober-50 prober-51
	_, to := serving(t, func(w http.ResponseWriter, r *http.Request) {
		code, err := strconv.Atoi(r.URL.Query().Get("code"))
		assert.NoError(t, err)
		w.WriteHeader(code)
		if code != http.StatusNoContent && code != http.StatusNotModified {
			io.WriteString(w, "words")
		}
	})
	for code, want := range map[int]prober.Outcome{
		200: {Result: runtime.ProbeSuccess, Output: "words"},
		204: {Result: runtime.ProbeSuccess},
		299: {Result: runtime.ProbeSuccess, Output: "words"},
		300: {Result: runtime.ProbeSuccess, Warning: true, Output: "Probe terminated redirects, Response body: words"},
		301: {Result: runtime.ProbeSuccess, Warning: true, Output: "Probe terminated redirects, Response body: words"}, // to nowhere
		304: {Result: runtime.ProbeSuccess, Warning: true, Output: "Probe terminated redirects, Response body: "},
		399: {Result: runtime.ProbeSuccess, Warning: true, Output: "Probe terminated redirects, Response body: words"},
		400: {Result: runtime.ProbeFailure, Output: "HTTP probe failed with statuscode: 400", Detail: "words"},
		503: {Result: runtime.ProbeFailure, Output: "HTTP probe failed with statuscode: 503", Detail: "words"},
		999: {Result: runtime.ProbeFailure, Output: "HTTP probe failed with statuscode: 999", Detail: "words"},
	} {
		to.Probe.HTTPGet.Path = "/?code=" + strconv.Itoa(code)
		assert.Equal(t, want, get(t, to), code)
	}
}

func TestARedirectIsFollowedWithinTheHost(t *testing.T) { // prober-48
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "another port: "+r.URL.Path) }))
	defer other.Close()
	var asked atomic.Int32
	server, to := serving(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch r.URL.Path {
		case "/relative":
			http.Redirect(w, r, "/here", http.StatusFound)
		case "/port":
			http.Redirect(w, r, other.URL+"/there", http.StatusMovedPermanently)
		case "/away":
			w.Header().Set("Location", "http://192.0.2.1/")
			w.WriteHeader(http.StatusFound)
			io.WriteString(w, "over there")
		case "/away-by-scheme":
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusTemporaryRedirect)
		default:
			io.WriteString(w, r.URL.Path)
		}
	})
	at := func(path string) prober.Outcome {
		asked.Store(0)
		to.Probe.HTTPGet.Path = path
		return get(t, to)
	}
	assert.Equal(t, prober.Outcome{Result: runtime.ProbeSuccess, Output: "/here"}, at("/relative"))
	assert.Equal(t, prober.Outcome{Result: runtime.ProbeSuccess, Output: "another port: /there"}, at("/port"))
	assert.Equal(t, prober.Outcome{Result: runtime.ProbeSuccess, Warning: true, Output: "Probe terminated redirects, Response body: over there"}, at("/away"))
	assert.True(t, at("/away-by-scheme").Warning)
	assert.Equal(t, prober.Outcome{Result: runtime.ProbeFailure, Output: `Get "/loop": stopped after 10 redirects`}, at("/loop"))
	assert.EqualValues(t, 10, asked.Load())

	// A Host of the probe's own doesn't make the pod another host.
	to.Probe.HTTPGet.HTTPHeaders = []v1.HTTPHeader{{Name: "Host", Value: "example.org"}}
	assert.Equal(t, prober.Outcome{Result: runtime.ProbeSuccess, Output: "/here"}, at("/relative"))
	_ = server
}

func TestTLSCertificatesAreNotVerified(t *testing.T) { // prober-46
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s, %d certificates", r.Proto, len(r.TLS.PeerCertificates))
	}))
	server.EnableHTTP2 = true
	server.StartTLS() // with an untrusted certificate
	defer server.Close()
	to := targetOf(t, server.URL)
	assert.Equal(t, prober.Outcome{Result: runtime.ProbeSuccess, Output: "HTTP/2.0, 0 certificates"}, get(t, to))

	to.Probe.HTTPGet.Protocol = new(v1.HTTPProtocolHTTP1)
	assert.Equal(t, prober.Outcome{Result: runtime.ProbeSuccess, Output: "HTTP/1.1, 0 certificates"}, get(t, to))

	to.Probe.HTTPGet.Scheme = v1.URISchemeHTTP
	out := get(t, to)
	assert.Equal(t, runtime.ProbeFailure, out.Result, "a server with TLS, called without, responds 400: %v", out)
	_, plain := serving(t, echo)
	plain.Probe.HTTPGet.Scheme = v1.URISchemeHTTPS
	out = get(t, plain)
	assert.Equal(t, runtime.ProbeFailure, out.Result)
	assert.Contains(t, out.Output, "server gave HTTP response to HTTPS client")
}

func TestHTTP2WithoutTLS(t *testing.T) { // prober-54
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	to := targetOf(t, server.URL)
	action := to.Probe.HTTPGet
	action.Protocol = new(v1.HTTPProtocolHTTP2)
	assert.Equal(t, prober.Outcome{Result: runtime.ProbeSuccess, Output: "HTTP/2.0"}, get(t, to))

	for words, change := range map[string]func(){
		`protocol HTTP2 does not support a host ("example.org")`: func() { action.Host = "example.org" },
		`protocol HTTP2 does not go with scheme HTTPS`:           func() { action.Host, action.Scheme = "", v1.URISchemeHTTPS },
		`unknown protocol "HTTP9"`:                               func() { action.Protocol = new(v1.HTTPProtocol("HTTP9")) },
	} {
		*action = v1.HTTPGetAction{Port: action.Port, Protocol: new(v1.HTTPProtocolHTTP2)}
		change()
		_, err := prober.HTTPGet{}.Probe(t.Context(), to)
		require.EqualError(t, err, words)
	}
}

func TestTheTimeoutCoversTheWholeGet(t *testing.T) { // prober-47 prober-52
	_, to := serving(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/body":
			io.WriteString(w, "a beginning")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case "/drips":
			for r.Context().Err() == nil {
				io.WriteString(w, ".")
				w.(http.Flusher).Flush()
				time.Sleep(5 * time.Millisecond)
			}
		case "/redirects":
			time.Sleep(60 * time.Millisecond)
			http.Redirect(w, r, "/redirects", http.StatusFound)
		default:
			<-r.Context().Done()
		}
	})
	for path, words := range map[string]string{
		"/headers":   "context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
		"/redirects": "context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
		"/body":      "read the body: context deadline exceeded (Client.Timeout or context cancellation while reading body)",
		"/drips":     "read the body: context deadline exceeded (Client.Timeout or context cancellation while reading body)",
	} {
		to.Probe.HTTPGet.Path = path
		for to.Timeout = 200 * time.Millisecond; ; to.Timeout *= 2 {
			out := get(t, to)
			if !strings.Contains(out.Output, words) && strings.Contains(out.Output, "awaiting headers") && to.Timeout < time.Minute {
				continue // a busy machine needs longer for those
			}
			assert.Equal(t, runtime.ProbeFailure, out.Result, path)
			assert.Contains(t, out.Output, words, path)
			break
		}
	}
}

func TestOnlyTheBeginningOfABodyIsRead(t *testing.T) { // prober-49
	chunk := strings.Repeat("x", 64<<10)
	var sent atomic.Int64
	_, to := serving(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/cut" {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "less")
			return
		}
		for range 1 << 30 / len(chunk) { // 1 GiB
			n, err := io.WriteString(w, chunk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	out := get(t, to)
	assert.Equal(t, runtime.ProbeSuccess, out.Result)
	assert.Equal(t, strings.Repeat("x", 10<<10), out.Output)
	assert.Less(t, sent.Load(), int64(100<<20), "the rest is not waited for")

	// The server closed the connection: its response is unknown. The request is
	// repeated.
	to.Probe.HTTPGet.Path = "/cut"
	_, err := prober.HTTPGet{}.Probe(t.Context(), to)
	require.EqualError(t, err, "read the body: unexpected EOF")
}

func TestAnInvalidResponseIsAFailure(t *testing.T) { // prober-52
	for name, answer := range map[string]string{
		"nothing":        "",
		"no HTTP":        "220 mail.example.org ESMTP\r\n",
		"a code too big": "HTTP/1.1 99999 what\r\n\r\n",
		"endless header": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
	} {
		to := rawServer(t, func(c net.Conn) { io.WriteString(c, answer) })
		out := get(t, to)
		assert.Equal(t, runtime.ProbeFailure, out.Result, "%s: %v", name, out)
		assert.NotEmpty(t, out.Output, name)
	}
}

// rawServer is a listener whose connections are served by f, and then closed.
func rawServer(t *testing.T, f func(net.Conn)) prober.Target {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f(c)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return targetOf(t, "http://"+l.Addr().String())
}

func TestBadInputOfAGetIsNamed(t *testing.T) {
	server, plain := serving(t, echo)
	_ = server
	for name, c := range map[string]struct {
		change  func(to *prober.Target, g *v1.HTTPGetAction)
		err     string
		failure string
	}{
		"port 0 prober-42":          {change: func(_ *prober.Target, g *v1.HTTPGetAction) { g.Port = intstr.FromInt(0) }, err: "invalid port number: 0"},
		"port of no machine":        {change: func(_ *prober.Target, g *v1.HTTPGetAction) { g.Port = intstr.FromInt(65536) }, err: "invalid port number: 65536"},
		"port below 0":              {change: func(_ *prober.Target, g *v1.HTTPGetAction) { g.Port = intstr.FromString("-80") }, err: "invalid port number: -80"},
		"port with no name":         {change: func(_ *prober.Target, g *v1.HTTPGetAction) { g.Port = intstr.FromString("") }, err: `invalid port number: "" is neither a number nor the name of a port of container web`},
		"port of an unknown name":   {change: func(_ *prober.Target, g *v1.HTTPGetAction) { g.Port = intstr.FromString("https") }, err: `invalid port number: "https" is neither a number nor the name of a port of container web`},
		"no IP prober-41":           {change: func(to *prober.Target, g *v1.HTTPGetAction) { to.PodIP = "" }, err: "the pod has no IP yet"},
		"host with a slash":         {change: func(_ *prober.Target, g *v1.HTTPGetAction) { g.Host = "a/b" }, err: `invalid URL escape`},
		"host that can't be parsed": {change: func(_ *prober.Target, g *v1.HTTPGetAction) { g.Host = "a b" }, err: `invalid URL escape`},
		"unknown scheme":            {change: func(_ *prober.Target, g *v1.HTTPGetAction) { g.Scheme = "GOPHER" }, failure: `unsupported protocol scheme "gopher"`},
		"a header injected by value": {change: func(_ *prober.Target, g *v1.HTTPGetAction) {
			g.HTTPHeaders = []v1.HTTPHeader{{Name: "X-Two", Value: "1\r\nX-Evil: 1"}}
		}, failure: `invalid header field value for "X-Two"`},
		"a header injected by name": {change: func(_ *prober.Target, g *v1.HTTPGetAction) {
			g.HTTPHeaders = []v1.HTTPHeader{{Name: "X-Evil: 1\r\nX-Two", Value: "1"}}
		}, failure: `invalid header field name`},
		"a request injected by path": {change: func(_ *prober.Target, g *v1.HTTPGetAction) { g.Path = "/ HTTP/1.1\r\nX-Evil: 1\r\n\r\nGET /" }},
		"no host of that name":       {change: func(_ *prober.Target, g *v1.HTTPGetAction) { g.Host = "missing.invalid" }, failure: "missing.invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			to := plain
			action := *plain.Probe.HTTPGet
			c.change(&to, &action)
			to.Probe = &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: &action}}
			out, err := prober.HTTPGet{}.Probe(t.Context(), to)
			switch {
			case c.err != "":
				require.ErrorContains(t, err, c.err)
			case c.failure != "":
				require.NoError(t, err)
				assert.Equal(t, runtime.ProbeFailure, out.Result)
				assert.Contains(t, out.Output, c.failure)
			default:
				require.NoError(t, err)
				assert.NotContains(t, out.Output, "Evil=", "it is a path and stays one")
				assert.Contains(t, out.Output, "GET /%20HTTP/1.1%0D%0A")
			}
		})
	}
	_, err := prober.HTTPGet{}.Probe(t.Context(), prober.Target{Probe: &v1.Probe{}})
	require.EqualError(t, err, "probe has no httpGet")
}
