package remote

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/kube/metrics"
)

// A podRuntime has metrics, and counts the calls for descriptors.
type podRuntime struct {
	err       error
	described int
}

func (r *podRuntime) ListMetricDescriptors(context.Context) ([]*runtimeapi.MetricDescriptor, error) {
	r.described++
	return []*runtimeapi.MetricDescriptor{
		{Name: "container_threads", Help: "Threads.", LabelKeys: []string{"container", "pod"}},
		{Name: "container_oom_events_total", Help: "Kills.", LabelKeys: []string{"pod"}},
	}, nil
}

func (r *podRuntime) ListPodSandboxMetrics(context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
	value := func(v uint64) *runtimeapi.UInt64Value { return &runtimeapi.UInt64Value{Value: v} }
	return []*runtimeapi.PodSandboxMetrics{{
		Metrics: []*runtimeapi.Metric{{Name: "container_oom_events_total", MetricType: runtimeapi.MetricType_COUNTER, Value: value(3), LabelValues: []string{"web"}}},
		ContainerMetrics: []*runtimeapi.ContainerMetrics{{Metrics: []*runtimeapi.Metric{
			{Name: "container_threads", MetricType: runtimeapi.MetricType_GAUGE, Value: value(7), LabelValues: []string{"main", "web"}, Timestamp: 5_000_000_000},
			{Name: "container_threads", Value: value(7), LabelValues: []string{"main"}},
			{Name: "container_unknown", Value: value(7)},
		}}},
	}}, r.err
}

func scrape(t *testing.T, s metrics.Sources) string {
	t.Helper()
	m, err := metrics.New(metrics.Config{NodeName: "n1"})
	require.NoError(t, err)
	rec := httptest.NewRecorder()
	m.Handlers(s)[metrics.CadvisorPath].ServeHTTP(rec, httptest.NewRequest(http.MethodGet, metrics.CadvisorPath, nil))
	require.Equal(t, http.StatusOK, rec.Code, rec.Body.String())
	return rec.Body.String()
}

func TestMetricsOfTheRuntimeAreServed(t *testing.T) {
	runtime := new(podRuntime)
	s := metrics.Sources{PodMetrics: NewPodMetrics(runtime), Machine: metrics.Machine{CPUs: 4}}
	for range 2 {
		text := scrape(t, s)
		for _, want := range []string{
			"# TYPE container_oom_events_total counter\ncontainer_oom_events_total{pod=\"web\"} 3\n",
			"# TYPE container_threads gauge\ncontainer_threads{container=\"main\",pod=\"web\"} 7 5000\n",
			"container_scrape_error 1\n", // two metrics that do not match a descriptor
			"machine_cpu_cores",
		} {
			assert.Contains(t, text, want)
		}
		assert.NotContains(t, text, "container_unknown")
	}
	assert.Equal(t, 1, runtime.described)
}

func TestARuntimeWithoutMetrics(t *testing.T) {
	for code, want := range map[codes.Code]bool{codes.Unimplemented: false, codes.Unavailable: true} {
		supported, err := NewPodMetrics(&podRuntime{err: status.Error(code, "no")}).Collect(t.Context(), nil)
		assert.Equal(t, want, supported)
		assert.Equal(t, want, err != nil)
		text := scrape(t, metrics.Sources{PodMetrics: NewPodMetrics(&podRuntime{err: status.Error(code, "no")})})
		assert.Equal(t, want, strings.Contains(text, "container_scrape_error 1\n"), text)
	}
}
