package metrics_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/kube/metrics"
	"github.com/kubeparts/kubeparts/kube/metrics/cluster"
	"github.com/kubeparts/kubeparts/kube/metrics/remote"
)

func TestErrorsNameTheBadInput(t *testing.T) {
	_, err := metrics.New(metrics.Config{})
	require.EqualError(t, err, "metrics: Config.NodeName is empty")
	_, err = remote.New(nil)
	require.ErrorContains(t, err, "remote: ")
	_, err = cluster.New(nil)
	require.ErrorContains(t, err, "cluster: ")
	w := newWorld(t)
	_, err = remote.New(w.Metrics)
	require.ErrorContains(t, err, "duplicate metrics collector registration", "it was made before")
}

func TestSeveralNodesHaveSeparateMetrics(t *testing.T) {
	a, b := newWorld(t), newWorld(t)
	a.PodWorker().Orphan(nil)
	assert.Equal(t, []string{"kubelet_orphaned_runtime_pods_total 1"}, a.lines(t, metrics.Path, "kubelet_orphaned_runtime_pods_total"))
	assert.Equal(t, []string{"kubelet_orphaned_runtime_pods_total 0"}, b.lines(t, metrics.Path, "kubelet_orphaned_runtime_pods_total"))
	m, err := metrics.New(metrics.Config{NodeName: "c", WithoutProcess: true})
	require.NoError(t, err)
	assert.NotContains(t, world{Metrics: m}.scrape(t, metrics.Path), "go_goroutines")
	assert.Contains(t, a.scrape(t, metrics.Path), "go_goroutines")
	assert.Contains(t, a.scrape(t, metrics.Path), `kubelet_node_name{node="n1"} 1`)
}

// Without Sources only metrics from hooks are served.
func TestMissingComponentsAreOmitted(t *testing.T) {
	w := newWorld(t)
	assert.NotContains(t, w.scrape(t, metrics.Path), "kubelet_running_pods")
	assert.Equal(t, []string{"resource_scrape_error 0"}, w.lines(t, metrics.ResourcePath, "resource_scrape_error"))
	assert.Equal(t, []string{"machine_scrape_error 1"}, w.lines(t, metrics.CadvisorPath, "machine_scrape_error"))
}

// A check that has not run yet reports no failure.
func TestACheckThatDidNotRunIsNotUnhealthy(t *testing.T) { // st-18
	w := newWorld(t)
	ask := w.Check("healthz", "syncloop", func() error { return nil })
	assert.Empty(t, w.lines(t, metrics.SLIsPath, "kubernetes_healthcheck"))
	require.NoError(t, ask())
	assert.Equal(t, []string{`kubernetes_healthcheck{name="syncloop",type="healthz"} 1`}, w.lines(t, metrics.SLIsPath, "kubernetes_healthcheck"))
}

// If the runtime fails, the statistics of the node are still served.
func TestAScrapeContinuesAfterAComponentFails(t *testing.T) {
	w := newWorld(t).known()
	nodeOnly := summary()
	nodeOnly.Pods = nil
	w.stats.set(nodeOnly, errors.New("the runtime does not answer"))
	assert.Equal(t, []string{"resource_scrape_error 1"}, w.lines(t, metrics.ResourcePath, "resource_scrape_error"))
	assert.Len(t, w.lines(t, metrics.ResourcePath, "node_cpu_usage_seconds_total"), 1)
	assert.Equal(t, []string{"container_scrape_error 1"}, w.lines(t, metrics.CadvisorPath, "container_scrape_error"))
	assert.Len(t, w.lines(t, metrics.CadvisorPath, "machine_cpu_cores"), 1)

	w.stats.set(nil, errBroken)
	assert.Equal(t, []string{"resource_scrape_error 1"}, w.lines(t, metrics.ResourcePath, "resource_scrape_error"))
	assert.Equal(t, []string{"kubelet_running_pods 1"}, w.lines(t, metrics.Path, "kubelet_running_pods"))

	twice := summary()
	twice.Pods = append(twice.Pods, twice.Pods[0]) // which no Prometheus takes
	w.stats.set(twice, nil)
	assert.Len(t, w.lines(t, metrics.ResourcePath, "pod_cpu_usage_seconds_total"), 1)
}

func TestAScrapeDoesNotWaitForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stats.summary = func(ctx context.Context) (*statsapi.Summary, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		w.sources.Stats = w.stats
		begun := time.Now()
		assert.Equal(t, []string{"resource_scrape_error 1"}, w.lines(t, metrics.ResourcePath, "resource_scrape_error"))
		assert.Equal(t, 10*time.Second, time.Since(begun))
	})
}

// The response is compressed if the client accepts gzip.
func TestTheTextCanBeCompressed(t *testing.T) {
	w := newWorld(t).known().live(t)
	rec := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodGet, metrics.Path, nil)
	req.Header.Set("Accept-Encoding", "gzip")
	w.Handlers(w.sources)[metrics.Path].ServeHTTP(rec, req)
	assert.Equal(t, "gzip", rec.Header().Get("Content-Encoding"))
	assert.False(t, strings.Contains(rec.Body.String(), "kubelet_"))
}
