package remote

import (
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
	"github.com/kubeparts/kubeparts/runtime/cri/credentials"
	"github.com/kubeparts/kubeparts/runtime/cri/images"
)

type imageMetrics struct {
	pulled       *prometheus.HistogramVec
	pullErrors   prometheus.Counter
	waited       prometheus.Observer
	ensured      *prometheus.CounterVec
	plugin       *prometheus.HistogramVec
	pluginErrors *prometheus.CounterVec
}

func (i *imageMetrics) declare(s *family.Set) {
	i.pulled = s.Histograms("images.Hooks.Pulled", "kubelet_image_pull_duration_seconds", "Duration of image pulls.",
		[]float64{1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}, "image_size_in_bytes")
	i.pullErrors = s.Counter("images.Hooks.Pulled", "kubeparts_image_pull_errors_total", "Failed image pulls.")
	i.waited = s.Histogram("images.Hooks.Pulled", "kubeparts_image_pull_wait_seconds", "Time for which image pulls were queued.", nil)
	i.ensured = s.Counters("images.Hooks.Ensured", "kubelet_image_manager_ensure_image_requests_total", "Requests for images of containers.", "present_locally", "pull_policy", "pull_required")
	i.plugin = s.Histograms("credentials.Hooks.PluginRan", "kubelet_credential_provider_plugin_duration", "Duration of credential provider plugins, in seconds.", nil, "plugin_name")
	i.pluginErrors = s.Counters("credentials.Hooks.PluginRan", "kubelet_credential_provider_plugin_errors_total", "Failures of credential provider plugins.", "plugin_name")
}

// Images returns the hooks of an images.Manager.
func (r *Metrics) Images() images.Hooks {
	m := &r.images
	return images.Hooks{
		Pulled: func(i images.PullInfo) {
			m.waited.Observe(i.Waited.Seconds())
			if i.Pod != nil {
				now := time.Now()
				r.node.ImagePulled(i.Pod.UID, now.Add(-i.Waited-i.Took), now)
			}
			if i.Err != nil {
				m.pullErrors.Inc()
				return
			}
			m.pulled.WithLabelValues(size(i.Size)).Observe(i.Took.Seconds())
		},
		Ensured: func(i images.EnsureInfo) {
			present := strconv.FormatBool(i.Present)
			if i.Request.PullPolicy == "Always" {
				present = "unknown" // not checked
			}
			policy := i.Request.PullPolicy
			if policy == "" {
				policy = "IfNotPresent"
			}
			m.ensured.WithLabelValues(present, strings.ToLower(string(policy)), strconv.FormatBool(i.Pulled)).Inc()
		},
	}
}

// sizes are the size classes of pulls. As in the kubelet, a megabyte has 1 << 20 bytes.
var sizes = []struct {
	most  uint64 // MiB
	label string
}{
	{10, "0-10MB"}, {100, "10MB-100MB"}, {500, "100MB-500MB"}, {1 << 10, "500MB-1GB"}, {5 << 10, "1GB-5GB"}, {10 << 10, "5GB-10GB"},
	{20 << 10, "10GB-20GB"}, {30 << 10, "20GB-30GB"}, {40 << 10, "30GB-40GB"}, {60 << 10, "40GB-60GB"}, {100 << 10, "60GB-100GB"},
}

func size(bytes uint64) string {
	if bytes == 0 {
		return "N/A"
	}
	for _, s := range sizes {
		if bytes <= s.most<<20 {
			return s.label
		}
	}
	return "GT100GB"
}

// Credentials returns the hooks of credentials.Plugins.
func (r *Metrics) Credentials() credentials.Hooks {
	m := &r.images
	return credentials.Hooks{PluginRan: func(i credentials.PluginRunInfo) {
		m.plugin.WithLabelValues(i.Plugin).Observe(i.Duration.Seconds())
		if i.Err != nil {
			m.pluginErrors.WithLabelValues(i.Plugin).Inc()
		}
	}}
}
