package cri

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestHTTPHooks(t *testing.T) {
	var got *http.Request
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
		return httpHook(t.Context(), &g, c, []string{"127.0.0.1"})
	}

	require.NoError(t, ask(v1.HTTPGetAction{Path: "/bye?a=1", Port: intstr.FromString("http")}), "any answer is a success (rt-101)")
	assert.Equal(t, "/bye?a=1", got.URL.String())
	assert.Equal(t, "shop", got.Host)
	assert.Equal(t, "secret", got.Header.Get("Authorization"))

	require.NoError(t, ask(v1.HTTPGetAction{Scheme: v1.URISchemeHTTPS, Port: intstr.FromInt32(port(secure))}), "nothing is verified (rt-100)")
	assert.NotNil(t, got.TLS)
	assert.Equal(t, "secret", got.Header.Get("Authorization"))

	require.NoError(t, ask(v1.HTTPGetAction{Scheme: v1.URISchemeHTTPS, Port: intstr.FromInt32(port(plain))}), "a server without TLS is asked again (rt-100)")
	assert.Empty(t, got.Header.Get("Authorization"), "but not told the secret")
	assert.Equal(t, "1", got.Header.Get("X-A"))

	require.Error(t, ask(v1.HTTPGetAction{Port: intstr.FromString("none")}))
	require.Error(t, httpHook(t.Context(), &v1.HTTPGetAction{Port: intstr.FromInt32(80)}, c, nil), "there is nobody to ask")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, httpHook(ended, &v1.HTTPGetAction{Port: intstr.FromInt32(port(plain))}, c, []string{"127.0.0.1"}), context.Canceled)
}

func TestAHookNeedsAHandlerThatIsKnown(t *testing.T) {
	err := new(Runtime).runHook(t.Context(), &v1.LifecycleHandler{TCPSocket: &v1.TCPSocketAction{}}, &v1.Container{}, "c", nil)
	require.ErrorContains(t, err, "invalid handler: ") // rt-98
}
