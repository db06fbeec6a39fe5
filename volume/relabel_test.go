package volume_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// labelled is a node whose device is staged with the SELinux label of its pod.
func labelled(t *testing.T) (*node, func(*volume.Config)) {
	return labelledWith(t, v1.ReadWriteOncePod)
}

func labelledWith(t *testing.T, mode v1.PersistentVolumeAccessMode) (*node, func(*volume.Config)) {
	n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter), plugin: staged()}
	n.plugin.Capabilities.SELinux = true
	objects := new(claims).bound("c", func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) {
		pv.Spec.AccessModes = []v1.PersistentVolumeAccessMode{mode}
	})
	return n, func(c *volume.Config) {
		c.PersistentVolumes.Claims, c.SELinuxLabel = objects, seLinuxLabel
	}
}

func labelledPod(uid, level string) *v1.Pod {
	p := claimPod(uid, "c")
	p.Spec.SecurityContext = &v1.PodSecurityContext{SELinuxOptions: &v1.SELinuxOptions{Level: level}}
	return p
}

// acts records the order of the calls for the device and the volumes.
func acts(n *node) func() []string {
	var mu sync.Mutex
	var list []string
	n.plugin.Fault = func(_ context.Context, act, _ string) error {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, act)
		return nil
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(list)
	}
}

// A pod that replaces one with another SELinux level does not get that one's mount,
// even if it is desired before the device is unstaged.
func TestAReplacementPodGetsItsOwnLabel(t *testing.T) {
	for _, level := range []string{"s0:c1", "s0:c2"} {
		synctest.Test(t, func(t *testing.T) {
			n, cfg := labelled(t)
			done := acts(n)
			start(t, n, cfg)
			old, next := labelledPod("old", "s0:c1"), labelledPod("new", level)
			_, err := n.Mount(t.Context(), old)
			require.NoError(t, err)
			var wg sync.WaitGroup
			wg.Go(func() {
				_, err := n.Mount(t.Context(), next)
				assert.NoError(t, err)
			})
			wait(time.Second)
			require.NoError(t, n.Unmount(t.Context(), old))
			wg.Wait()
			assert.Equal(t, "system_u:object_r:container_file_t:"+level, n.plugin.Last("pv-c").SELinuxLabel)
			want := []string{"Stage", "SetUp", "TearDown", "SetUp"}
			if level != "s0:c1" {
				want = []string{"Stage", "SetUp", "TearDown", "Unstage", "Stage", "SetUp"}
			}
			assert.Equal(t, want, done())
		})
	}
}

// The label is checkpointed: the replacement gets its own also if the agent is
// restarted before the old pod is gone, and if unstaging fails at first.
func TestAReplacementPodGetsItsOwnLabelAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, cfg := labelled(t)
		start(t, n, cfg)
		_, err := n.Mount(t.Context(), labelledPod("old", "s0:c1"))
		require.NoError(t, err)
		n.stop()

		n.plugin = staged()
		n.plugin.Capabilities.SELinux = true
		failed := false
		done := acts(n)
		record := n.plugin.Fault
		n.plugin.Fault = func(ctx context.Context, act, name string) error {
			_ = record(ctx, act, name)
			if act == "Unstage" && !failed {
				failed = true
				return errors.New("busy")
			}
			return nil
		}
		start(t, n, cfg)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := n.Mount(t.Context(), labelledPod("new", "s0:c2"))
			assert.NoError(t, err)
		})
		wait(time.Second)
		require.NoError(t, n.Retain(t.Context(), func(uid types.UID) bool { return uid == "new" }))
		wg.Wait()
		assert.Equal(t, []string{"TearDown", "Unstage", "Unstage", "Stage", "SetUp"}, done())
		assert.Equal(t, "system_u:object_r:container_file_t:s0:c2", n.plugin.Last("pv-c").SELinuxLabel)
	})
}

// A volume that several pods use has one label: a pod with another one waits until they are gone
// (vol-13).
func TestPodsWithDifferentLabelsDoNotShareAVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, cfg := labelledWith(t, v1.ReadWriteMany)
		done := acts(n)
		start(t, n, cfg)
		first, second, other := labelledPod("first", "s0:c1"), labelledPod("second", "s0:c1"), labelledPod("other", "s0:c2")
		for _, pod := range []*v1.Pod{first, second} {
			_, err := n.Mount(t.Context(), pod)
			require.NoError(t, err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := n.Mount(t.Context(), other)
			assert.NoError(t, err)
		})
		wait(30 * time.Second)
		assert.Contains(t, n.emitted()[0], `volume is in use by another pod with SELinux label "system_u:object_r:container_file_t:s0:c1"`)
		require.NoError(t, n.Unmount(t.Context(), first))
		wait(time.Second)
		assert.Equal(t, []string{"Stage", "SetUp", "SetUp", "TearDown"}, done())
		require.NoError(t, n.Unmount(t.Context(), second))
		since := time.Now()
		wg.Wait()
		assert.Less(t, time.Since(since), 2*time.Second, "it does not wait for a back-off")
		assert.Equal(t, []string{"Stage", "SetUp", "SetUp", "TearDown", "TearDown", "Unstage", "Stage", "SetUp"}, done())
		assert.Equal(t, "system_u:object_r:container_file_t:s0:c2", n.plugin.Last("pv-c").SELinuxLabel)
	})
}

// As in Kubernetes before 1.37, if it is configured.
func TestOnlyVolumesOfOnePodAreLabeled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, cfg := labelledWith(t, v1.ReadWriteMany)
		start(t, n, cfg, func(c *volume.Config) { c.PersistentVolumes.SELinuxOnePodOnly = true })
		for _, pod := range []*v1.Pod{labelledPod("first", "s0:c1"), labelledPod("second", "s0:c2")} {
			_, err := n.Mount(t.Context(), pod)
			require.NoError(t, err)
		}
		assert.Empty(t, n.plugin.Last("pv-c").SELinuxLabel)
	})
}

// A volume that an earlier agent has mounted stays mounted while its pod runs,
// whatever label its device has in the checkpoint.
func TestAMountedVolumeIsNotRelabeled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, cfg := labelled(t)
		start(t, n, cfg, func(c *volume.Config) { c.SELinuxLabel = nil })
		_, err := n.Mount(t.Context(), labelledPod("p", "s0:c1"))
		require.NoError(t, err)
		n.stop()

		n.plugin = staged()
		n.plugin.Capabilities.SELinux = true
		done := acts(n)
		start(t, n, cfg)
		_, err = n.Mount(t.Context(), labelledPod("p", "s0:c1"))
		require.NoError(t, err)
		assert.Equal(t, []string{"Stage", "SetUp"}, done())
	})
}
