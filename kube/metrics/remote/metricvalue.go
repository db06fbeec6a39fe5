package remote

import runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

// metricValue returns the value of a metric. Since Kubernetes 1.38 it may be a fraction: the file of hack/next takes
// the place of this one.
func metricValue(m *runtimeapi.Metric) float64 { return float64(m.GetValue().GetValue()) }
