package cri

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeparts/kubeparts/runtime"
)

func TestHTTPHooks(t *testing.T) {
	var got *http.Request
	var insecure bool
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.WriteHeader(http.StatusTeapot)
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	port := func(s *httptest.Server) int32 {
		u, err := url.Parse(s.URL)
		require.NoError(t, err)
		n, err := strconv.Atoi(u.Port())
		require.NoError(t, err)
		return int32(n)
	}
	headers := []v1.HTTPHeader{{Name: "Host", Value: "shop"}, {Name: "Authorization", Value: "secret"}, {Name: "X-A", Value: "1"}}
	c := &v1.Container{Name: "web", Ports: []v1.ContainerPort{{Name: "http", ContainerPort: port(plain)}}}
	ask := func(g v1.HTTPGetAction) error {
		got = nil
		g.HTTPHeaders = headers
		var err error
		insecure, err = httpHook(t.Context(), &g, c, []string{"127.0.0.1"})
		return err
	}

	require.NoError(t, ask(v1.HTTPGetAction{Path: "/bye?a=1", Port: intstr.FromString("http")}), "any response is a success (rt-101)")
	assert.Equal(t, "/bye?a=1", got.URL.String())
	assert.Equal(t, "shop", got.Host)
	assert.Equal(t, "secret", got.Header.Get("Authorization"))
	assert.Equal(t, "kube-lifecycle/"+runtime.KubernetesMajorMinor, got.UserAgent())

	require.NoError(t, ask(v1.HTTPGetAction{Scheme: v1.URISchemeHTTPS, Port: intstr.FromInt32(port(secure))}), "the certificate is not verified (rt-100)")
	assert.NotNil(t, got.TLS)
	assert.False(t, insecure)
	assert.Equal(t, "secret", got.Header.Get("Authorization"))

	require.NoError(t, ask(v1.HTTPGetAction{Scheme: v1.URISchemeHTTPS, Port: intstr.FromInt32(port(plain))}), "the request is repeated without TLS (rt-100)")
	assert.Empty(t, got.Header.Get("Authorization"), "the credentials are not sent without TLS")
	assert.True(t, insecure, "the fallback is reported")
	assert.Equal(t, "1", got.Header.Get("X-A"))

	require.Error(t, ask(v1.HTTPGetAction{Port: intstr.FromString("none")}))
	_, err := httpHook(t.Context(), &v1.HTTPGetAction{Port: intstr.FromInt32(80)}, c, nil)
	require.Error(t, err, "the pod has no address")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = httpHook(ended, &v1.HTTPGetAction{Port: intstr.FromInt32(port(plain))}, c, []string{"127.0.0.1"})
	require.ErrorIs(t, err, context.Canceled)
}

// A redirect in the response to a hook must not make the agent send requests, or
// the hook's headers, to other hosts of the node's network.
func TestAHookIsRedirectedOnlyWithinItsHost(t *testing.T) {
	var got []string
	record := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Host+" "+r.Header.Get("X-Secret")) })
	elsewhere := httptest.NewUnstartedServer(record)
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skipf("there is no second loopback address: %v", err)
	}
	require.NoError(t, elsewhere.Listener.Close())
	elsewhere.Listener = listener
	elsewhere.Start()
	defer elsewhere.Close()
	otherPort := httptest.NewServer(record)
	defer otherPort.Close()
	requests := 0
	to := ""
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		http.Redirect(w, r, to, http.StatusFound)
	}))
	defer pod.Close()
	hook := func(location string) error {
		got, requests, to = nil, 0, location
		_, err := httpHook(t.Context(), &v1.HTTPGetAction{
			Port: intstr.FromInt(pod.Listener.Addr().(*net.TCPAddr).Port), HTTPHeaders: []v1.HTTPHeader{{Name: "X-Secret", Value: "s"}},
		}, &v1.Container{}, []string{"127.0.0.1"})
		return err
	}
	require.NoError(t, hook(elsewhere.URL), "the redirect is the response")
	assert.Empty(t, got, "requests to another host")
	assert.Equal(t, 1, requests)
	require.NoError(t, hook(otherPort.URL))
	assert.Equal(t, []string{otherPort.Listener.Addr().String() + " s"}, got, "another port of the same host")
	require.ErrorContains(t, hook("/again"), "stopped after 10 redirects")
	assert.Equal(t, 10, requests)
}

// An endless response does not block a hook.
func TestTheResponseToAHookIsBounded(t *testing.T) {
	ended := make(chan struct{})
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 4096)); err != nil {
				return
			}
		}
	}))
	defer pod.Close()
	_, err := httpHook(t.Context(), &v1.HTTPGetAction{Port: intstr.FromInt(pod.Listener.Addr().(*net.TCPAddr).Port)}, &v1.Container{}, []string{"127.0.0.1"})
	require.NoError(t, err)
	<-ended
}

func TestAHookIsSentByTheProtocolItAsksFor(t *testing.T) { // KEP-5999
	var got []string
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Proto) })
	serve := func(h2c bool) int32 {
		s := httptest.NewUnstartedServer(handler)
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetHTTP1(!h2c)
		s.Config.Protocols.SetUnencryptedHTTP2(h2c)
		s.Start()
		t.Cleanup(s.Close)
		return int32(s.Listener.Addr().(*net.TCPAddr).Port)
	}
	one, two := serve(false), serve(true)
	ask := func(port int32, protocol v1.HTTPProtocol, scheme v1.URIScheme) error {
		got = nil
		_, err := httpHook(t.Context(), &v1.HTTPGetAction{Port: intstr.FromInt32(port), Protocol: &protocol, Scheme: scheme}, &v1.Container{}, []string{"127.0.0.1"})
		return err
	}
	require.NoError(t, ask(one, v1.HTTPProtocolHTTP1, v1.URISchemeHTTP))
	assert.Equal(t, []string{"HTTP/1.1"}, got)
	require.NoError(t, ask(two, v1.HTTPProtocolHTTP2, v1.URISchemeHTTP))
	assert.Equal(t, []string{"HTTP/2.0"}, got)
	require.Error(t, ask(one, v1.HTTPProtocolHTTP2, v1.URISchemeHTTP), "the request is not repeated with another protocol")
	require.EqualError(t, ask(two, v1.HTTPProtocolHTTP2, v1.URISchemeHTTPS), "httpGet: protocol HTTP2 does not go with scheme HTTPS")
	require.EqualError(t, ask(one, "HTTP3", ""), `httpGet: unknown protocol "HTTP3"`)
}

func TestAHookNeedsAHandlerThatIsKnown(t *testing.T) {
	err := new(Runtime).runHook(t.Context(), hook{handler: &v1.LifecycleHandler{TCPSocket: &v1.TCPSocketAction{}}, container: &v1.Container{}})
	require.ErrorContains(t, err, "invalid handler: ") // rt-98
}

func TestOnlyTheEndOfAHooksOutputIsReported(t *testing.T) {
	flood := bytes.Repeat([]byte("x"), 100<<20)
	assert.Equal(t, maxOutput, len(excerpt(flood, []byte("why"))))
	assert.True(t, bytes.HasSuffix(excerpt(flood, []byte("why")), []byte("xwhy")), "rt-149")
	assert.Equal(t, "outerr", string(excerpt([]byte("out"), []byte("err"))))
	assert.Empty(t, excerpt(nil, nil))
}
