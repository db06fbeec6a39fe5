package fakecri

import runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

// setMetricValue sets the value of a metric, an integer. Since Kubernetes 1.38 it may be a fraction: the file of
// hack/next takes the place of this one.
func setMetricValue(m *runtimeapi.Metric, value float64) { m.Value = number(uint64(value)) }
