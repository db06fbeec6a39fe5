package podhttp_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeparts/kubeparts/internal/podhttp"
)

func TestARequestIsThatOfItsAction(t *testing.T) {
	c := &v1.Container{Name: "web", Ports: []v1.ContainerPort{{Name: "http", ContainerPort: 8080}}}
	for name, tc := range map[string]struct {
		action v1.HTTPGetAction
		ip     string
		url    string
		err    string
	}{
		"defaults":            {v1.HTTPGetAction{Port: intstr.FromInt32(80)}, "10.0.0.1", "http://10.0.0.1:80", ""},
		"IPv6 and a name":     {v1.HTTPGetAction{Port: intstr.FromString("http"), Path: "/a?b=c"}, "fd00::1", "http://[fd00::1]:8080/a?b=c", ""},
		"another host":        {v1.HTTPGetAction{Host: "example.org", Scheme: "HTTPS", Port: intstr.FromString("443"), Path: "x"}, "", "https://example.org:443/x", ""},
		"path with a control": {v1.HTTPGetAction{Port: intstr.FromInt32(80), Path: "/\n"}, "10.0.0.1", "http://10.0.0.1:80/%0A", ""},
		"no address":          {v1.HTTPGetAction{Port: intstr.FromInt32(80)}, "", "", "the pod has no IP yet"},
		"no such port":        {v1.HTTPGetAction{Port: intstr.FromString("https")}, "10.0.0.1", "", "invalid port number"},
		"port out of range":   {v1.HTTPGetAction{Port: intstr.FromInt32(65536)}, "10.0.0.1", "", "invalid port number: 65536"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := podhttp.NewRequest(t.Context(), &tc.action, c, tc.ip, "agent/1")
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.url, r.URL.String())
			assert.Equal(t, http.Header{"User-Agent": {"agent/1"}, "Accept": {"*/*"}}, r.Header)
			assert.Empty(t, r.Header.Get("Host"))
		})
	}
}

func TestABodyEndsAtItsLimit(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "0123456789") }))
	defer server.Close()
	for limit, want := range map[int64]string{0: "", 4: "0123", 10: "0123456789", 100: "0123456789"} {
		client := podhttp.NewClient(podhttp.Config{MaxBody: limit})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		require.NoError(t, err)
		response, err := client.Do(r)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, want, string(body))
		client.Close()
	}
}

func TestHeadersAreBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }))
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	_, err = podhttp.NewClient(podhttp.Config{}).Do(r) //nolint:bodyclose // there is no response
	require.ErrorContains(t, err, "headers exceeded")
}

// Whatever a spec contains, the request goes to the host and port that the spec
// names, or there is an error.
func FuzzNewRequest(f *testing.F) {
	f.Add("", "http", "/healthz", "HTTP", "X", "1")
	f.Add("a b", "80", "//other/x", "HTTPS", "Host", "other")
	f.Add("", "-1", "http://other/", "\n", "A:\r\nB", "\r\n")
	f.Add("::1", "65535", "mailto:me", "file", "Accept", "")
	f.Fuzz(func(t *testing.T, host, port, path, scheme, header, value string) {
		action := &v1.HTTPGetAction{
			Host: host, Port: intstr.Parse(port), Path: path, Scheme: v1.URIScheme(scheme), HTTPHeaders: []v1.HTTPHeader{{Name: header, Value: value}},
		}
		c := &v1.Container{Ports: []v1.ContainerPort{{Name: "http", ContainerPort: 80}}}
		to, addressErr := podhttp.Address(host, action.Port, c, "10.0.0.1")
		r, err := podhttp.NewRequest(t.Context(), action, c, "10.0.0.1", "agent/1")
		if err != nil {
			return
		}
		require.NoError(t, addressErr)
		_, number, err := net.SplitHostPort(to)
		require.NoError(t, err)
		assert.Equal(t, number, r.URL.Port(), fmt.Sprint(r.URL))
		if host == "" {
			assert.Equal(t, "10.0.0.1", r.URL.Hostname(), fmt.Sprint(r.URL))
		}
	})
}
