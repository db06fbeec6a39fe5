package kubelet

import (
	"bytes"
	"errors"
	"fmt"
	goruntime "runtime"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// families returns the metrics that the agent serves.
func (a *agent) families(path string) (map[string]*dto.MetricFamily, error) {
	a.t.Helper()
	_, body, err := a.get(path)
	if err != nil {
		return nil, err
	}
	all, err := parsed(body)
	require.NoError(a.t, err)
	return all, nil
}

// parsed parses the text format of Prometheus.
func parsed(text []byte) (map[string]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	return parser.TextToMetricFamilies(bytes.NewReader(text))
}

// sample sums up the samples of a family that have these labels: name, value, name …
func sample(f *dto.MetricFamily, labels ...string) (sum float64) {
	for _, m := range f.GetMetric() {
		has := map[string]string{}
		for _, l := range m.GetLabel() {
			has[l.GetName()] = l.GetValue()
		}
		same := true
		for i := 0; i < len(labels); i += 2 {
			same = same && has[labels[i]] == labels[i+1]
		}
		if same {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

// metricsTell checks the metrics of two pods, one of which fails.
func checkMetrics(t *testing.T, w *world) {
	w.put("web", manifest("web", containers(container("main", untilTerm,
		"readinessProbe: {exec: {command: [sh, -c, 'exit 0']}, periodSeconds: 1, timeoutSeconds: 20}"))))
	w.put("once", manifest("once", never, containers(container("main", "exit 3"))))
	w.start()
	wants := func(path, name string, least float64, labels ...string) {
		t.Helper()
		w.until(name, func() error {
			all, err := w.families(path)
			if err != nil {
				return err
			}
			if has := sample(all[name], labels...); has < least {
				return fmt.Errorf("%s%v is %v, not %v or more", name, labels, has, least)
			}
			return nil
		})
	}
	wants("/metrics", "kubelet_desired_pods", 2, "static", "true")
	wants("/metrics", "kubelet_running_pods", 1)
	wants("/metrics", "kubelet_running_containers", 1, "container_state", "running")
	wants("/metrics", "kubelet_terminated_containers_total", 1, "exit_code", "3", "container_type", "container")
	wants("/metrics", "kubelet_started_pods_total", 2)
	wants("/metrics", "kubelet_started_containers_total", 2, "container_type", "container")
	wants("/metrics", "kubelet_runtime_operations_total", 2, "operation_type", "run_podsandbox")
	wants("/metrics", "kubelet_pod_start_duration_seconds", 1)
	wants("/metrics", "kubelet_pleg_relist_duration_seconds", 1)
	wants("/metrics", "kubelet_pod_status_sync_duration_seconds", 2)
	wants("/metrics", "kubelet_pod_worker_duration_seconds", 2, "operation_type", "create")
	wants("/metrics", "kubelet_working_pods", 1, "lifecycle", "sync", "config", "desired")
	wants("/metrics/probes", "prober_probe_total", 1, "probe_type", "Readiness", "result", "successful", "pod", "web-node")
	wants("/metrics/resource", "node_memory_working_set_bytes", 1)
	if w.daemon != nil { // usage is reported after the next measurement
		of := []string{"container", "main", "pod", "web-node", "namespace", "default"}
		wants("/metrics/resource", "container_memory_working_set_bytes", 1, of...)
		wants("/metrics/cadvisor", "container_memory_working_set_bytes", 1, of...)
		wants("/metrics/cadvisor", "container_spec_cpu_period", 1, of...)
		wants("/metrics/cadvisor", "container_threads", 1, of...)
	}
	wants("/metrics/cadvisor", "machine_cpu_cores", 1)
	_, _ = w.healthz()
	wants("/metrics/slis", "kubernetes_healthchecks_total", 1, "name", "runtime", "type", "healthz")
	all, err := w.families("/metrics/resource")
	require.NoError(t, err)
	assert.Zero(t, sample(all["resource_scrape_error"]))

	w.take("web")
	w.until("the series of a pod go with it", func() error {
		all, err := w.families("/metrics/probes")
		if err == nil && sample(all["prober_probe_total"]) != 0 {
			err = errors.New("prober_probe_total is still there")
		}
		return err
	})
}

func TestMetricsOfProcesses(t *testing.T) {
	if goruntime.GOOS != "linux" {
		t.Skip("the metrics of the node are read from /proc")
	}
	t.Parallel()
	checkMetrics(t, &world{agent: newAgent(t, "process")})
}

func TestIntegrationMetricsOfContainerd(t *testing.T) {
	t.Parallel()
	checkMetrics(t, onContainerd(t))
}

// pullsAreCounted starts a pod whose image has to be pulled, and scrapes the metrics of
// pulls and of image requests.
func pullsAreCounted(t *testing.T, w *world, image string) {
	w.put("puller", manifest("puller", containers(container("main", untilTerm, "image: "+image, "imagePullPolicy: IfNotPresent"))))
	w.start()
	w.until("the pull is counted", func() error {
		all, err := w.families("/metrics")
		if err != nil {
			return err
		}
		for _, want := range []struct {
			name   string
			labels []string
		}{
			{"kubelet_image_pull_duration_seconds", nil},
			{"kubeparts_image_pull_wait_seconds", nil},
			{"kubelet_image_manager_ensure_image_requests_total", []string{"present_locally", "false", "pull_policy", "ifnotpresent", "pull_required", "true"}},
		} {
			if has := sample(all[want.name], want.labels...); has != 1 {
				return fmt.Errorf("%s%v is %v, not 1", want.name, want.labels, has)
			}
		}
		return nil
	})
}

func TestPullsAreCounted(t *testing.T) {
	t.Parallel()
	pullsAreCounted(t, onFakeCRI(t), "registry.example/team/tool:1")
}

func TestIntegrationPullsFromARegistryAreCounted(t *testing.T) {
	t.Parallel()
	w := onContainerd(t)
	pullsAreCounted(t, w, lab.NewRegistry(t).PushBusybox("team/tool:1"))
}
