package kubelet

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Project quotas are used with their feature gate only.
func TestEmptyDirsHaveQuotasWithTheirGate(t *testing.T) {
	for _, enabled := range []bool{false, true} {
		b := newBase(t, standalone(t, ""))
		b.k.FeatureGates = map[string]bool{"LocalStorageCapacityIsolationFSQuotaMonitoring": enabled}
		assert.Equal(t, enabled, (&volumePlugins{b: b}).emptyDir().Quotas != nil)
	}
}
