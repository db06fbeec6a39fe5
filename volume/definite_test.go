package volume_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// vol-21: a final error refers to its own attempt. What an earlier attempt of the same agent may have left
// is torn down.
func TestAFinalErrorDoesNotHideAnEarlierAttempt(t *testing.T) {
	for act, undo := range map[string]string{"SetUp": "TearDown", "Stage": "Unstage"} {
		t.Run(act, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter), plugin: staged()}
				var attempts atomic.Int32
				fault := func(_ context.Context, called, _ string) error {
					switch {
					case called != act:
						return nil
					case attempts.Add(1) == 1:
						return volumetest.ErrFault // after it has mounted something
					}
					return volume.Definite(volumetest.ErrFault) // the Secret has been deleted
				}
				n.plugin.Mounter, n.plugin.Fault, n.plugin.HalfWay = n.mounter, fault, nil
				if act == "SetUp" {
					n.plugin.Fault, n.plugin.HalfWay = nil, fault
				}
				start(t, n, func(c *volume.Config) {
					c.PersistentVolumes.Claims, c.WaitTimeout = new(claims).bound("c"), 5*time.Second
				})
				_, err := n.Mount(t.Context(), claimPod("p", "c"))
				require.ErrorIs(t, err, volumetest.ErrFault)
				require.GreaterOrEqual(t, attempts.Load(), int32(2))
				if act == "Stage" {
					assert.Len(t, n.VolumesInUse(), 1)
				}
				require.NoError(t, n.Unmount(t.Context(), claimPod("p", "c")))
				wait(5 * time.Minute) // the back-off
				synctest.Wait()
				assert.Equal(t, 1, n.plugin.Count(undo))
				assert.Empty(t, n.mounter.Below(n.root))
				assert.Empty(t, n.VolumesInUse())
			})
		})
	}
}
