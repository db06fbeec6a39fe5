package volume_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

func namesOf(list []statsapi.VolumeStats) []string {
	var names []string
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names
}

// vol-76, vol-79, vol-80: each pod is measured at its own time, one or two periods
// apart; volumes that count as the pod's use of the node's disk are reported
// separately.
func TestVolumesAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
		n.plugin = &volumetest.Plugin{Fault: func(_ context.Context, act, name string) error {
			switch {
			case act == "Stats" && name == "broken":
				return errors.New("broken")
			case act == "Stats" && name == "none":
				return errors.ErrUnsupported
			}
			return nil
		}}
		var measured []string
		start(t, n, func(c *volume.Config) {
			c.StatsPeriod, c.PersistentVolumes.Claims = time.Minute, new(claims).bound("claim")
			c.Hooks.Measured = func(_ *v1.Pod, spec *volume.Spec, _ statsapi.FsStats) {
				if spec.Claim != nil {
					measured = append(measured, spec.Claim.Name)
				}
			}
		})
		p := claimPod("p", "claim", "disk", "memory", "conf", "secret", "broken", "none")
		for i, source := range []v1.VolumeSource{
			{EmptyDir: &v1.EmptyDirVolumeSource{}}, {EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}},
			{ConfigMap: &v1.ConfigMapVolumeSource{}}, {Secret: &v1.SecretVolumeSource{}},
			{EmptyDir: &v1.EmptyDirVolumeSource{}}, {EmptyDir: &v1.EmptyDirVolumeSource{}},
		} {
			p.Spec.Volumes[i+1].VolumeSource = source
		}
		_, err := n.Mount(t.Context(), p)
		require.NoError(t, err)
		assert.Empty(t, n.Stats("p"))
		wait(time.Minute)
		synctest.Wait()
		ephemeral, persistent := n.VolumeStats("p")
		assert.Equal(t, []string{"conf", "disk"}, namesOf(ephemeral))
		assert.Equal(t, []string{"claim", "memory", "secret"}, namesOf(persistent))
		assert.Equal(t, &statsapi.PVCReference{Name: "claim", Namespace: "default"}, persistent[0].PVCRef)
		assert.Len(t, n.Stats("p"), 5)
		assert.NotZero(t, *ephemeral[0].UsedBytes)
		assert.Equal(t, []string{"claim"}, measured)
		per := n.plugin.Count("Stats")
		wait(100 * time.Minute)
		synctest.Wait()
		times := n.plugin.Count("Stats") / per
		assert.GreaterOrEqual(t, times, 50)
		assert.LessOrEqual(t, times, 101)

		assert.ErrorContains(t, n.Measure(t.Context(), "p"), "broken")
		require.NoError(t, n.Unmount(t.Context(), p))
		assert.Empty(t, n.Stats("p"))
		before := n.plugin.Count("Stats")
		wait(time.Hour)
		assert.Equal(t, before, n.plugin.Count("Stats"))
	})
}

// vol-76: a negative period switches it off.
func TestNothingIsMeasuredWithANegativePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, nil)
		_, err := n.Mount(t.Context(), pod("p", "a"))
		require.NoError(t, err)
		wait(24 * time.Hour)
		assert.Zero(t, n.plugin.Count("Stats"))
		assert.Empty(t, n.Stats("p"))
	})
}
