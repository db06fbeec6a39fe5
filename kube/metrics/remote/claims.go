package remote

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeparts/kubeparts/cm/dra"
	"github.com/kubeparts/kubeparts/cm/dra/registry"
	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
)

type claimMetrics struct {
	operations, calls    *prometheus.HistogramVec
	prepares, unprepares *prometheus.CounterVec
}

func (c *claimMetrics) declare(s *family.Set) {
	buckets := prometheus.ExponentialBucketsRange(.1, 40, 15)
	c.operations = s.Histograms("dra.Hooks.Operated", "dra_operations_duration_seconds", "Duration of the preparation of all resource claims of a pod, and of its reversal.", buckets, "operation_name", "is_error")
	c.calls = s.Histograms("registry.Config.Called", "dra_grpc_operations_duration_seconds", "Duration of calls of DRA drivers.", buckets, "driver_name", "method_name", "grpc_status_code")
	c.prepares = s.Counters("dra.Hooks.Skipped", "dra_node_prepare_skips_total", "Calls of NodePrepareResources that were not necessary because of skipNodeOperations.", "driver_name")
	c.unprepares = s.Counters("dra.Hooks.Skipped", "dra_node_unprepare_skips_total", "Calls of NodeUnprepareResources that were not necessary because of skipNodeOperations.", "driver_name")
}

// Claims returns the hooks of a dra.Manager.
func (r *Metrics) Claims() dra.Hooks {
	c := &r.claims
	return dra.Hooks{
		Operated: func(i dra.OperationInfo) {
			c.operations.WithLabelValues(i.Type, strconv.FormatBool(i.Err != nil)).Observe(i.Duration.Seconds())
		},
		Skipped: func(i dra.SkipInfo) {
			skips := c.prepares
			if i.Method == "NodeUnprepareResources" {
				skips = c.unprepares
			}
			skips.WithLabelValues(i.Driver).Inc()
		},
	}
}

// DRA is a registry.Config.Called.
func (r *Metrics) DRA(i registry.CallInfo) {
	r.claims.calls.WithLabelValues(i.Driver, i.Method, i.Code).Observe(i.Duration.Seconds())
}
