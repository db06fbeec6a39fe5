package volumes

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/wingtest"
	"github.com/kubeparts/kubeparts/volume"
)

func TestTheHealthOfVolumesIsReadWithItsGate(t *testing.T) {
	for _, enabled := range []bool{false, true} {
		b := wingtest.Base(t, wingtest.Standalone(t, ""))
		b.Configuration.FeatureGates = map[string]bool{"CSIVolumeHealth": enabled}
		read := false
		b.Config.Adjust = append(b.Config.Adjust, compose.Adjust(func(c *volume.Config) { read = c.HealthChanged != nil }))
		v, err := New(b, Deps{})
		require.NoError(t, err)
		assert.Equal(t, enabled, read)
		assert.Equal(t, enabled, v.Health != nil)
	}
}
