package volume_test

import (
	"context"
	"errors"
	"path/filepath"
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

func staged() *volumetest.Plugin {
	return &volumetest.Plugin{Shared: func(s *volume.Spec) string { return "driver^" + s.DirName() }}
}

// vol-2, vol-20, vol-24: a device is staged once for all pods, and unstaged after
// the last one.
func TestADeviceIsStagedOnceForAllPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter), plugin: staged()}
		start(t, n, func(c *volume.Config) { c.PersistentVolumes.Claims = new(claims).bound("c") })
		var wg sync.WaitGroup
		for _, uid := range []string{"a", "b", "c"} {
			wg.Go(func() {
				_, err := n.Mount(t.Context(), claimPod(uid, "c"))
				assert.NoError(t, err)
			})
		}
		wg.Wait()
		assert.Equal(t, 1, n.plugin.Count("Stage"))
		assert.Equal(t, 3, n.plugin.Count("SetUp"))
		assert.Equal(t, []v1.UniqueVolumeName{"example.com/fake/driver^pv-c"}, n.VolumesInUse())
		for _, uid := range []string{"a", "b"} {
			require.NoError(t, n.Unmount(t.Context(), claimPod(uid, "c")))
		}
		synctest.Wait()
		assert.Zero(t, n.plugin.Count("Unstage"))
		require.NoError(t, n.Unmount(t.Context(), claimPod("c", "c")))
		synctest.Wait()
		assert.Equal(t, 1, n.plugin.Count("Unstage"))
		assert.Empty(t, n.VolumesInUse(), "vol-25")
		entries, _ := filepath.Glob(filepath.Join(n.root, "plugins/*/*"))
		assert.Empty(t, entries)
	})
}

// vol-20, vol-21: staging fails for all pods that wait, and each of them gets the
// error.
func TestADeviceThatCannotBeStaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter), plugin: staged()}
		n.plugin.Fault = func(_ context.Context, act, _ string) error {
			if act == "Stage" {
				return errors.New("no medium")
			}
			return nil
		}
		start(t, n, func(c *volume.Config) {
			c.PersistentVolumes.Claims, c.WaitTimeout = new(claims).bound("c"), 400*time.Millisecond
		})
		_, err := n.Mount(t.Context(), claimPod("a", "c"))
		var failed *volume.PodError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, volume.BackingOff, failed.Volumes[0].Phase)
		assert.Equal(t, []string{`Warning FailedMount MountVolume.MountDevice failed for volume "pv-c" : no medium`}, n.emitted())
		assert.Zero(t, n.plugin.Count("SetUp"))
		require.NoError(t, n.Unmount(t.Context(), claimPod("a", "c")))
		synctest.Wait()
		wait(time.Minute)
		assert.Equal(t, 1, n.plugin.Count("Unstage"), "half of it may be there")
		assert.Equal(t, 1, n.plugin.Count("Stage"))
	})
}

// vol-14 … vol-18, vol-25: the node does not attach; a volume that requires it is
// reported as in use, and mounted when it is attached.
func TestAVolumeIsMountedWhenItIsAttached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		attached := map[v1.UniqueVolumeName]string{}
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter), plugin: staged()}
		n.plugin.Capabilities.Attach = true
		start(t, n, func(c *volume.Config) {
			c.PersistentVolumes.Claims = new(claims).bound("c")
			c.PersistentVolumes.Node = apiNode{attached: func(name v1.UniqueVolumeName) (string, bool) {
				mu.Lock()
				defer mu.Unlock()
				path, ok := attached[name]
				return path, ok
			}}
		})
		const name = "example.com/fake/driver^pv-c"
		time.AfterFunc(time.Minute, func() {
			assert.Equal(t, []v1.UniqueVolumeName{name}, n.VolumesInUse(), "as soon as a pod needs it (vol-17)")
			mu.Lock()
			attached[name] = "/dev/sdx"
			mu.Unlock()
			n.AttachChanged()
		})
		begun := time.Now()
		_, err := n.Mount(t.Context(), claimPod("p", "c"))
		require.NoError(t, err)
		assert.Equal(t, time.Minute, time.Since(begun))
		assert.Equal(t, "/dev/sdx", n.plugin.Last("pv-c").DevicePath)
	})
}

// vol-17: an attached volume is not used before the node's status reports it as in
// use; otherwise the controller could detach it under the pod.
func TestAVolumeIsNotUsedBeforeItIsReportedInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var reported []v1.UniqueVolumeName
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter), plugin: staged()}
		n.plugin.Capabilities.Attach = true
		start(t, n, func(c *volume.Config) {
			c.PersistentVolumes.Claims = new(claims).bound("c")
			c.PersistentVolumes.Node = apiNode{inUse: func(name v1.UniqueVolumeName) bool {
				mu.Lock()
				defer mu.Unlock()
				return slices.Contains(reported, name)
			}}
		})
		time.AfterFunc(10*time.Second, func() { // the node's status is written
			assert.Zero(t, n.plugin.Count("Stage"))
			mu.Lock()
			reported = n.VolumesInUse()
			mu.Unlock()
			n.AttachChanged()
		})
		begun := time.Now()
		_, err := n.Mount(t.Context(), claimPod("p", "c"))
		require.NoError(t, err)
		assert.Equal(t, 10*time.Second, time.Since(begun))
	})
}

// vol-20: the pod gets an event after it has waited for 10 minutes.
func TestAVolumeThatIsNeverAttached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter), plugin: staged()}
		n.plugin.Capabilities.Attach = true
		start(t, n, func(c *volume.Config) {
			c.PersistentVolumes.Claims = new(claims).bound("c")
			c.PersistentVolumes.Node = apiNode{attached: func(v1.UniqueVolumeName) (string, bool) { return "", false }}
		})
		_, err := n.Mount(t.Context(), claimPod("p", "c"))
		require.ErrorContains(t, err, "unmounted volumes=[c], unattached volumes=[c], failed to process volumes=[]: context deadline exceeded")
		wait(10 * time.Minute)
		assert.Equal(t, []string{`Warning FailedMount MountVolume.WaitForAttach failed for volume "pv-c" : timed out waiting for the volume to be attached to the node, after 10m0s`}, n.emitted())
		require.NoError(t, n.Unmount(t.Context(), claimPod("p", "c")))
		assert.Empty(t, n.VolumesInUse())
	})
}

// vol-1, vol-2.
func TestUniqueNames(t *testing.T) {
	at := volume.Place{RootDir: "/r", PodUID: "u", Plugin: "kubernetes.io/empty-dir", Name: "cache"}
	assert.Equal(t, "kubernetes.io/empty-dir/u-cache", volume.UniqueName(at, "", "cache"))
	assert.Equal(t, "kubernetes.io/empty-dir/d^h", volume.UniqueName(at, "d^h", "cache"))
	assert.Equal(t, filepath.FromSlash("/r/pods/u/volumes/kubernetes.io~empty-dir/cache"), at.Dir()) // section 6.1
	assert.Equal(t, filepath.FromSlash("/r/pods/u/plugins/kubernetes.io~empty-dir/cache"), at.PluginDir())
	assert.Equal(t, filepath.FromSlash("/r/plugins/kubernetes.io/empty-dir"), at.NodeDir())
	at.Block = true
	assert.Equal(t, filepath.FromSlash("/r/pods/u/volumeDevices/kubernetes.io~empty-dir/cache"), at.Dir())
	assert.Equal(t, "kubernetes.io/empty-dir", volume.Unescape(volume.Escape("kubernetes.io/empty-dir")))
	assert.Equal(t, "not mounted, uncertain, mounted", volume.NotMounted.String()+", "+volume.Uncertain.String()+", "+volume.InPlace.String())
	_ = types.UID("")
}

// vol-13: the SELinux label of the pod is a mount option, if the pod has one.
func TestSELinuxLabelsAreMountOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := new(claims).bound("c", func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) {
			pv.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}
		})
		n := start(t, nil, func(c *volume.Config) {
			c.PersistentVolumes.Claims, c.WaitTimeout, c.SELinuxLabel = objects, time.Second, seLinuxLabel
		})
		n.plugin.Capabilities.SELinux = true
		p := claimPod("p", "c")
		p.Spec.SecurityContext = &v1.PodSecurityContext{SELinuxOptions: &v1.SELinuxOptions{Level: "s0:c1,c2"}}
		_, err := n.Mount(t.Context(), p)
		require.NoError(t, err)
		assert.Equal(t, []string{`context="system_u:object_r:container_file_t:s0:c1,c2"`}, n.plugin.Last("pv-c").MountOptions)
		require.NoError(t, n.Unmount(t.Context(), p))

		each := v1.SELinuxChangePolicyRecursive // each file is labeled instead, if the pod specifies that
		p.Spec.SecurityContext.SELinuxChangePolicy = &each
		_, err = n.Mount(t.Context(), p)
		require.NoError(t, err)
		assert.Empty(t, n.plugin.Last("pv-c").MountOptions)
		require.NoError(t, n.Unmount(t.Context(), p))
		p.Spec.SecurityContext.SELinuxChangePolicy = nil

		second := p.Spec.Containers[0]
		second.SecurityContext = &v1.SecurityContext{SELinuxOptions: &v1.SELinuxOptions{Level: "s0:c3"}}
		p.Spec.Containers = append(p.Spec.Containers, second)
		_, err = n.Mount(t.Context(), p)
		assert.ErrorContains(t, err, `volume "c": containers have different SELinux labels, "system_u:object_r:container_file_t:s0:c1,c2" and "system_u:object_r:container_file_t:s0:c3"`)
	})
}

func seLinuxLabel(o *v1.SELinuxOptions) (string, error) {
	return "system_u:object_r:container_file_t:" + o.Level, nil
}
