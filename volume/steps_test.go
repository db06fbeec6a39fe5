package volume_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/local"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// vol-21, vol-32: a volume that an earlier agent mounted stays recorded as mounted,
// even if the first SetUp of this agent fails; it is torn down before its pod has
// terminated.
func TestAFinalErrorKeepsAVolumeOfAnEarlierAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, nil)
		_, err := n.Mount(t.Context(), pod("p", "data"))
		require.NoError(t, err)
		n.stop()
		n.plugin = &volumetest.Plugin{Mounter: n.mounter, Fault: func(_ context.Context, act, _ string) error {
			if act == "SetUp" {
				return volume.Definite(volumetest.ErrFault)
			}
			return nil
		}}
		start(t, n, func(c *volume.Config) { c.WaitTimeout = time.Second })
		_, err = n.Mount(t.Context(), pod("p", "data"))
		require.ErrorIs(t, err, volumetest.ErrFault)
		require.NoError(t, n.Unmount(t.Context(), pod("p", "data")))
		assert.Empty(t, n.mounter.Below(n.root))
		assert.NoDirExists(t, filepath.Join(n.root, "pods/p"))
	})
}

// vol-20, vol-24: nor does it drop a device that an earlier agent has staged.
func TestAFinalErrorKeepsADeviceOfAnEarlierAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter), plugin: staged()}
		with := func(c *volume.Config) {
			c.PersistentVolumes.Claims, c.WaitTimeout = new(claims).bound("c"), time.Second
		}
		start(t, n, with)
		_, err := n.Mount(t.Context(), claimPod("p", "c"))
		require.NoError(t, err)
		n.stop()
		n.plugin = staged()
		n.plugin.Fault = func(_ context.Context, act, _ string) error {
			if act == "Stage" {
				return volume.Definite(volumetest.ErrFault)
			}
			return nil
		}
		start(t, n, with)
		_, err = n.Mount(t.Context(), claimPod("p", "c"))
		require.ErrorIs(t, err, volumetest.ErrFault)
		require.NoError(t, n.Unmount(t.Context(), claimPod("p", "c")))
		wait(time.Minute) // the back-off of staging it
		synctest.Wait()
		assert.Equal(t, 1, n.plugin.Count("Unstage"))
	})
}

// vol-20, vol-21: a rejected request for a volume implies nothing about the remains of
// an earlier attempt.
func TestARejectedVolumeIsTornDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
		n.plugin = &volumetest.Plugin{Mounter: n.mounter, HalfWay: func(_ context.Context, act, _ string) error {
			if act == "SetUp" {
				return volumetest.ErrFault
			}
			return nil
		}}
		objects := new(claims).bound("c", func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) {
			pv.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: "zone", Operator: v1.NodeSelectorOpIn, Values: []string{"a"}}},
			}}}}
		})
		var mu sync.Mutex
		zone := "a"
		start(t, n, func(c *volume.Config) {
			c.PersistentVolumes.Claims, c.WaitTimeout = objects, 10*time.Second
			c.PersistentVolumes.Node = apiNode{object: func() *v1.Node {
				mu.Lock()
				defer mu.Unlock()
				node := new(v1.Node)
				node.Labels = map[string]string{"zone": zone}
				if n.plugin.Count("SetUp") > 0 {
					zone = "b"
				}
				return node
			}}
		})
		_, err := n.Mount(t.Context(), claimPod("p", "c"))
		require.ErrorContains(t, err, "no matching NodeSelectorTerms")
		require.NoError(t, n.Unmount(t.Context(), claimPod("p", "c")))
		assert.Equal(t, 1, n.plugin.Count("TearDown"))
		assert.Empty(t, n.mounter.Below(n.root))
	})
}

// vol-20: of two pods that request it at the same time, only one gets it.
func TestReadWriteOncePodIsOnePodsFromTheBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := new(claims).bound("c", func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) {
			pv.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}
		})
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
		n.plugin = &volumetest.Plugin{Mounter: n.mounter, Fault: func(ctx context.Context, act, _ string) error {
			if act == "SetUp" {
				wait(time.Second)
			}
			return nil
		}}
		start(t, n, func(c *volume.Config) { c.PersistentVolumes.Claims, c.WaitTimeout = objects, 10*time.Second })
		var wg sync.WaitGroup
		for _, uid := range []string{"p", "q"} {
			wg.Go(func() { _, _ = n.Mount(t.Context(), claimPod(uid, "c")) })
		}
		wg.Wait()
		assert.Len(t, n.mounter.Below(n.root), 1)
	})
}

// Section 6.1: a context error that is not from the cancellation of the step is an
// error like others, and not retried without a pause.
func TestAForeignContextErrorIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
		n.plugin = &volumetest.Plugin{Fault: func(ctx context.Context, act, _ string) error {
			if act == "SetUp" && n.plugin.Count("SetUp") > 1000 {
				<-ctx.Done() // called without a pause
			}
			return context.Canceled
		}}
		start(t, n, func(c *volume.Config) { c.WaitTimeout = 10 * time.Second })
		_, err := n.Mount(t.Context(), pod("p", "data"))
		require.Error(t, err)
		assert.Equal(t, 5, n.plugin.Count("SetUp"), "after 0, 0.5, 1.5, 3.5 and 7.5 s")
		assert.Len(t, n.emitted(), 5)
	})
}

// vol-56: a token that is always due for replacement by the node's clock is not
// requested without a pause.
func TestAVolumeThatIsAlwaysDueIsNoHotLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
		n.plugin = &volumetest.Plugin{Capabilities: volumetest.Capabilities{Refresh: true}, RefreshIn: 1, Fault: func(ctx context.Context, act, _ string) error {
			if act == "Refresh" && n.plugin.Count("Refresh") > 1000 {
				<-ctx.Done()
			}
			return nil
		}}
		start(t, n)
		_, err := n.Mount(t.Context(), pod("p", "data"))
		require.NoError(t, err)
		wait(10*time.Second + time.Millisecond)
		assert.LessOrEqual(t, n.plugin.Count("Refresh"), 10)
		assert.GreaterOrEqual(t, n.plugin.Count("Refresh"), 1)
	})
}

// vol-23: a volume that is being torn down is not mounted.
func TestAVolumeThatIsBeingTornDownIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
		n.plugin = &volumetest.Plugin{Mounter: n.mounter, Fault: func(_ context.Context, act, _ string) error {
			if act == "TearDown" {
				wait(time.Minute)
			}
			return nil
		}}
		start(t, n)
		p := pod("p", "data")
		_, err := n.Mount(t.Context(), p)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Error(t, n.Unmount(ctx, p)) // and the pod is desired again
		begun := time.Now()
		_, err = n.Mount(t.Context(), p)
		require.NoError(t, err)
		assert.Equal(t, 59*time.Second, time.Since(begun))
		assert.Len(t, n.mounter.Below(n.root), 1)
	})
}

// A checkpoint that does not match its plugin does not cause a panic; the plugin is
// called to reconstruct the volume.
func TestACheckpointThatDoesNotMatchItsPlugin(t *testing.T) {
	root, mounter := t.TempDir(), new(volumetest.Mounter)
	plugin, err := local.New(local.Config{RootDir: root, Mounter: mounter})
	require.NoError(t, err)
	for path, record := range map[string]string{
		"pods/p/volume-x.json":                       `{"version":1,"place":{"podUID":"p","plugin":"kubernetes.io/local-volume","name":"pv"},"spec":{"volume":{"name":"data"}}}`,
		"plugins/kubeparts.io~volumes/volume-x.json": `{"version":1,"plugin":"kubernetes.io/local-volume","device":"d","spec":{}}`,
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o750))
		require.NoError(t, checkpoint.Write(filepath.Join(root, path), json.RawMessage(record)))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(root, "pods/p/volumes/kubernetes.io~local-volume/pv"), 0o750))
	var seen found
	n := &node{root: root, mounter: mounter}
	start(t, n, seen.hook, func(c *volume.Config) { c.Plugins = []volume.Plugin{plugin} })
	require.NoError(t, n.Retain(t.Context(), noPod))
	require.Eventually(t, func() bool {
		_, err := os.Lstat(filepath.Join(root, "pods/p"))
		return os.IsNotExist(err)
	}, time.Minute, time.Millisecond)
	n.stop()
	require.Len(t, seen, 1)
	assert.False(t, seen[0].recorded)
	assert.NoError(t, seen[0].err)
}
