package volume_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// A mount that hangs in the kernel cannot be canceled. It delays only its pod, and Run
// only for a limited time; a later Manager finds the volume and completes the operation.
func TestASetUpThatHangsDoesNotHoldRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
		hang := make(chan struct{})
		n.plugin = &volumetest.Plugin{Mounter: n.mounter, HalfWay: func(_ context.Context, act, name string) error {
			if act == "SetUp" && name == "stuck" {
				<-hang
			}
			return nil
		}}
		m, err := volume.New(volume.Config{RootDir: n.root, Plugins: []volume.Plugin{n.plugin}, Mounter: n.mounter, StatsPeriod: -1})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- m.Run(ctx) }()
		go func() { _, _ = m.Mount(ctx, pod("p", "stuck")) }()
		_, err = m.Mount(ctx, pod("q", "fine"))
		require.NoError(t, err)
		synctest.Wait()
		begun := time.Now()
		cancel()
		require.EqualError(t, <-ended, "volume: not stopped within 30s: set up example.com/fake/stuck of pod p")
		assert.Equal(t, 30*time.Second, time.Since(begun))
		close(hang)
		synctest.Wait()

		next := start(t, &node{root: n.root, mounter: n.mounter})
		_, err = next.Mount(t.Context(), pod("p", "stuck"))
		require.NoError(t, err)
		require.NoError(t, next.Unmount(t.Context(), pod("p", "stuck")))
		require.NoError(t, next.Retain(t.Context(), noPod))
		synctest.Wait()
		assert.Empty(t, n.mounter.Below(n.root))
	})
}

// With a negative StopTimeout it waits as long as it takes.
func TestRunWaitsForAHangingSetUpWithoutStopTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		n := start(t, &node{root: t.TempDir(), mounter: new(volumetest.Mounter), plugin: &volumetest.Plugin{
			Fault: func(_ context.Context, act, _ string) error {
				if act == "SetUp" {
					<-hang
				}
				return nil
			},
		}}, func(c *volume.Config) { c.StopTimeout, c.WaitTimeout = -1, time.Second })
		_, err := n.Mount(t.Context(), pod("p", "stuck"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.AfterFunc(time.Hour, func() { close(hang) })
		begun := time.Now()
		n.stop()
		assert.Equal(t, time.Hour, time.Since(begun))
	})
}
