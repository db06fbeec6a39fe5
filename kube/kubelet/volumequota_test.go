package kubelet

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/volumes"
)

// Project quotas are used with their feature gate only.
func TestEmptyDirsHaveQuotasWithTheirGate(t *testing.T) {
	for _, enabled := range []bool{false, true} {
		b := newBase(t, standalone(t, ""))
		b.Configuration.FeatureGates = map[string]bool{"LocalStorageCapacityIsolationFSQuotaMonitoring": enabled}
		assert.Equal(t, enabled, (&volumes.Plugins{B: b}).EmptyDir().Quotas != nil)
	}
}
