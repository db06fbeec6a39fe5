package kubelet

import (
	"encoding/json"
	"fmt"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

func kubectlMetrics(d desk) {
	d.sleeper("web", "")
	d.until("the node reports the pod's usage", func() error {
		was := d.with("", "get", "--raw", "/api/v1/nodes/node/proxy/stats/summary")
		var summary statsapi.Summary
		if err := json.Unmarshal([]byte(was.out), &summary); err != nil {
			return fmt.Errorf("%w: %+v", err, was)
		}
		if summary.Node.Memory == nil || summary.Node.CPU == nil {
			return fmt.Errorf("the node consumes nothing: %s", was.out)
		}
		for _, pod := range summary.Pods {
			if pod.PodRef.Name == "web" && pod.PodRef.Namespace == d.name && len(pod.Containers) == 1 && pod.Containers[0].Memory != nil {
				return nil
			}
		}
		return fmt.Errorf("there is no such pod: %s", was.out)
	})
	assert.Contains(d.t, d.ok("get", "--raw", "/api/v1/nodes/node/proxy/pods"), `"name":"web"`)
	assert.Contains(d.t, d.ok("get", "--raw", "/api/v1/nodes/node/proxy/configz"), `"kubeletconfig"`)
	assert.Equal(d.t, "ok", d.ok("get", "--raw", "/api/v1/nodes/node/proxy/healthz"))
}

// kubectlScrapes: the metrics that dashboards and a metrics-server (the source of
// kubectl top) read from a node, through the API server.
func kubectlScrapes(d desk) {
	d.sleeper("web", "")
	scrape := func(path string) (map[string]*dto.MetricFamily, error) {
		was := d.with("", "get", "--raw", "/api/v1/nodes/node/proxy"+path)
		if was.code != 0 {
			return nil, fmt.Errorf("%s: %s", path, was.err)
		}
		all, err := parsed([]byte(was.out))
		require.NoError(d.t, err, "%s is no text that a Prometheus reads", path)
		return all, nil
	}
	mine := []string{"namespace", d.name, "pod", "web"}
	container := append([]string{"container", "web"}, mine...)
	for _, want := range []struct {
		path, name string
		labels     []string
	}{
		{"/metrics/resource", "node_cpu_usage_seconds_total", nil},
		{"/metrics/resource", "node_memory_working_set_bytes", nil},
		{"/metrics/resource", "pod_cpu_usage_seconds_total", mine},
		{"/metrics/resource", "pod_memory_working_set_bytes", mine},
		{"/metrics/resource", "container_cpu_usage_seconds_total", container},
		{"/metrics/resource", "container_memory_working_set_bytes", container},
		{"/metrics/resource", "container_start_time_seconds", container},
		{"/metrics/cadvisor", "container_cpu_usage_seconds_total", container},
		{"/metrics/cadvisor", "container_memory_working_set_bytes", container},
		{"/metrics/cadvisor", "machine_cpu_cores", nil},
		{"/metrics", "kubelet_running_pods", nil},
		{"/metrics", "kubelet_node_name", []string{"node", "node"}},
		{"/metrics", "kubelet_http_requests_total", []string{"path", "metrics/resource", "server_type", "readwrite"}},
		{"/metrics", "kubelet_certificate_manager_client_ttl_seconds", nil},
	} {
		d.until(fmt.Sprint(want.path, " has ", want.name, want.labels), func() error {
			all, err := scrape(want.path)
			if err == nil && sample(all[want.name], want.labels...) <= 0 {
				err = fmt.Errorf("it has %v", all[want.name])
			}
			return err
		})
	}
	all, err := scrape("/metrics/resource")
	require.NoError(d.t, err)
	assert.Zero(d.t, sample(all["resource_scrape_error"]))
}
