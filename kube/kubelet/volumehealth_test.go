package kubelet

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/volume"
)

func TestTheHealthOfVolumesIsReadWithItsGate(t *testing.T) {
	for _, enabled := range []bool{false, true} {
		b := newBase(t, standalone(t, ""))
		b.k.FeatureGates = map[string]bool{"CSIVolumeHealth": enabled}
		read := false
		b.cfg.Adjust = append(b.cfg.Adjust, Adjust{Volumes: func(c *volume.Config) error { read = c.HealthChanged != nil; return nil }})
		v, err := newVolumes(b, volumeDeps{})
		require.NoError(t, err)
		assert.Equal(t, enabled, read)
		assert.Equal(t, enabled, v.health != nil)
	}
}
