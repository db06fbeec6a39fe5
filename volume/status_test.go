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

func TestTheStatusReportsVolumeProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		broken.Store(true)
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
		n.plugin = &volumetest.Plugin{Mounter: n.mounter, Fault: func(context.Context, string, string) error {
			if broken.Load() {
				return volumetest.ErrFault
			}
			return nil
		}}
		start(t, n, func(c *volume.Config) { c.WaitTimeout = time.Second })
		assert.Empty(t, n.Volumes("p"))
		_, err := n.Mount(t.Context(), pod("p", "data"))
		require.Error(t, err)
		held := n.Volumes("p")
		require.Len(t, held, 1)
		assert.Equal(t, []string{"data"}, held[0].Names)
		assert.True(t, held[0].Desired)
		assert.NotEqual(t, volume.InPlace.String(), held[0].State)
		assert.Contains(t, held[0].Err, volumetest.ErrFault.Error())
		assert.False(t, held[0].RetryAt.IsZero())
		assert.Empty(t, held[0].Path)
		cause, retryAt := n.Blocked("p")
		assert.Equal(t, `volume "data": `+held[0].Err, cause)
		assert.Equal(t, held[0].RetryAt, retryAt)

		broken.Store(false)
		_, err = n.Mount(t.Context(), pod("p", "data")) // returns when it is mounted
		for ; err != nil; _, err = n.Mount(t.Context(), pod("p", "data")) {
			wait(time.Second)
		}
		held = n.Volumes("p")
		require.Len(t, held, 1)
		assert.Equal(t, volume.InPlace.String(), held[0].State)
		assert.Empty(t, held[0].Err)
		assert.Equal(t, held[0].Place.Dir(), held[0].Path)
		cause, retryAt = n.Blocked("p")
		assert.Empty(t, cause)
		assert.Zero(t, retryAt)

		require.NoError(t, n.Unmount(t.Context(), pod("p", "data")))
		assert.Empty(t, n.Volumes("p"))
	})
}
