package prober_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

// The cost of one run, including the server's part.
func BenchmarkHandlers(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fine") }))
	defer server.Close()
	u, err := url.Parse(server.URL)
	if err != nil {
		b.Fatal(err)
	}
	n, _ := strconv.Atoi(u.Port())
	port := intstr.FromInt(n)
	for name, c := range map[string]struct {
		handler prober.Handler
		probe   v1.ProbeHandler
	}{
		"httpGet":   {prober.HTTPGet{}, v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Port: port}}},
		"tcpSocket": {prober.TCPSocket{}, v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: port}}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			to := prober.Target{Container: &v1.Container{}, PodIP: u.Hostname(), Timeout: 10 * time.Second, Probe: &v1.Probe{ProbeHandler: c.probe}}
			for b.Loop() {
				if out, err := c.handler.Probe(b.Context(), to); err != nil || out.Result != runtime.ProbeSuccess {
					b.Fatal(out, err)
				}
			}
		})
	}
}
