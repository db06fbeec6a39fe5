package volumes

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/wingtest"
)

// Project quotas are used with their feature gate only.
func TestEmptyDirsHaveQuotasWithTheirGate(t *testing.T) {
	for _, enabled := range []bool{false, true} {
		b := wingtest.Base(t, wingtest.Standalone(t, ""))
		b.Configuration.FeatureGates = map[string]bool{"LocalStorageCapacityIsolationFSQuotaMonitoring": enabled}
		assert.Equal(t, enabled, (&pluginSet{B: b}).emptyDir().Quotas != nil)
	}
}
