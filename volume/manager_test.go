package volume_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// vol-5, vol-18, vol-26: only volumes that a container uses are mounted, and Mount
// waits for all of them.
func TestAnUnusedVolumeIsNotMounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, nil)
		p := pod("p", "data", "conf")
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "unused"})
		p.Spec.InitContainers = []v1.Container{{Name: "i", VolumeMounts: []v1.VolumeMount{{Name: "init"}}}}
		p.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "e", VolumeMounts: []v1.VolumeMount{{Name: "debug"}}}}}
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "init"}, v1.Volume{Name: "debug"})
		got, err := n.Mount(t.Context(), p)
		require.NoError(t, err)
		at := func(name string) runtime.Volume {
			return runtime.Volume{Path: filepath.Join(n.root, "pods/p/volumes/example.com~fake", name)}
		}
		assert.Equal(t, map[string]runtime.Volume{"data": at("data"), "conf": at("conf"), "init": at("init"), "debug": at("debug")}, got)
		assert.Len(t, n.mounter.Below(n.root), 4)

		none, err := n.Mount(t.Context(), pod("none"))
		require.NoError(t, err)
		assert.Empty(t, none)

		require.NoError(t, n.Unmount(t.Context(), p))
		assert.Empty(t, n.mounter.Below(n.root))
		assert.NoDirExists(t, filepath.Join(n.root, "pods/p"), "nothing is left (vol-30)")
		require.NoError(t, n.Unmount(t.Context(), p), "again")
		require.NoError(t, n.Unmount(t.Context(), pod("never")))
	})
}

// While the actual state is the desired one, nothing runs (vol-3 is an event here
// instead of a poll every 100 ms).
func TestAnIdleManagerSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, nil)
		for _, uid := range []string{"a", "b", "c"} {
			_, err := n.Mount(t.Context(), pod(uid, "data"))
			require.NoError(t, err)
		}
		synctest.Wait()
		before := n.wokenTimes()
		wait(24 * time.Hour)
		assert.Equal(t, before, n.wokenTimes())
	})
}

// vol-21, section 6.1: a step that fails is tried again after 500 ms, and then
// twice as long each time, at most 2m2s; each time there is an event.
func TestAFailedSetUpIsRetriedWithBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		begun := time.Now()
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
		n.plugin = &volumetest.Plugin{Fault: func(_ context.Context, act, _ string) error {
			if act == "SetUp" {
				if at = append(at, time.Since(begun)); len(at) < 12 {
					return volumetest.ErrFault
				}
			}
			return nil
		}}
		start(t, n)
		_, err := n.Mount(t.Context(), pod("p", "data"))
		var failed *volume.PodError
		require.ErrorAs(t, err, &failed) // after 2m3s
		require.Len(t, failed.Volumes, 1)
		assert.Equal(t, volume.BackingOff, failed.Volumes[0].Phase)
		assert.Equal(t, begun.Add(127500*time.Millisecond), failed.Volumes[0].RetryAt)
		assert.ErrorIs(t, err, volumetest.ErrFault)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 123*time.Second, time.Since(begun)) // vol-26
		wait(20 * time.Minute)
		synctest.Wait()
		var gaps []time.Duration
		for i := 1; i < len(at); i++ {
			gaps = append(gaps, at[i]-at[i-1])
		}
		s := time.Second
		assert.Equal(t, []time.Duration{s / 2, s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 64 * s, 122 * s, 122 * s, 122 * s}, gaps)
		assert.Equal(t, `Warning FailedMount MountVolume.SetUp failed for volume "data" : volumetest: injected fault`, n.emitted()[0])
		assert.Len(t, n.emitted(), 11)
		_, err = n.Mount(t.Context(), pod("p", "data")) // it went on meanwhile (vol-27)
		require.NoError(t, err)
	})
}

// vol-27: the error of a wait that timed out reports each volume's progress, in the
// kubelet's format.
func TestTheErrorOfAWaitNamesEachVolumeAndItsPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
		hang := func(ctx context.Context, act, name string) error {
			if act == "SetUp" && name == "slow" || act == "Stage" && name == "device" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		of := func(names ...string) func(*volume.Spec) bool {
			return func(s *volume.Spec) bool {
				for _, name := range names {
					if s.Name() == name {
						return true
					}
				}
				return false
			}
		}
		n.plugin = &volumetest.Plugin{Fault: hang, Supports: of("slow", "fine")}
		start(t, n, func(c *volume.Config) {
			c.Plugins = append(c.Plugins,
				&volumetest.Plugin{Kind: "staged", Fault: hang, Supports: of("device"), Shared: func(s *volume.Spec) string { return "d" }},
				&volumetest.Plugin{Kind: "attached", Capabilities: volumetest.Capabilities{Attach: true}, Supports: of("away")},
			)
			c.PersistentVolumes.Node = apiNode{attached: func(v1.UniqueVolumeName) (string, bool) { return "", false }}
		})
		p := pod("p", "slow", "fine", "device", "away")
		_, err := n.Mount(t.Context(), p)
		var failed *volume.PodError
		require.ErrorAs(t, err, &failed)
		phases := map[string]string{}
		for _, v := range failed.Volumes {
			phases[v.Volume] = v.Phase
		}
		assert.Equal(t, map[string]string{"away": volume.WaitingAttach, "device": volume.WaitingDevice, "slow": volume.SettingUp}, phases)
		assert.EqualError(t, err, "unmounted volumes=[away device slow], unattached volumes=[away], failed to process volumes=[]: context deadline exceeded")
		assert.Empty(t, n.emitted(), "the caller reports it")

		// vol-28: an error of a volume itself ends the wait at once.
		begun := time.Now()
		_, err = n.Mount(t.Context(), pod("q", "fine", "unsupported"))
		require.ErrorAs(t, err, &failed)
		assert.ErrorContains(t, err, `unsupported], unattached volumes=[], failed to process volumes=[unsupported]: volume "unsupported": no volume plugin matched`) // "fine" may be mounted already
		assert.Less(t, time.Since(begun), time.Second)
		synctest.Wait()
		assert.DirExists(t, filepath.Join(n.root, "pods/q/volumes/example.com~fake/fine"), "the others are mounted (vol-10)")
	})
}

// vol-29: the error of Unmount names the volumes still mounted, and tear-down
// continues.
func TestUnmountReportsVolumesStillMounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
		var busy atomic.Bool
		busy.Store(true)
		n.plugin = &volumetest.Plugin{Fault: func(_ context.Context, act, name string) error {
			if act == "TearDown" && name != "fine" && busy.Load() {
				return errors.New("device is busy")
			}
			return nil
		}}
		start(t, n)
		p := pod("p", "b", "fine", "a")
		_, err := n.Mount(t.Context(), p)
		require.NoError(t, err)
		err = n.Unmount(t.Context(), p)
		var failed *volume.PodError
		require.ErrorAs(t, err, &failed)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "mounted volumes=[a b]: context deadline exceeded; volume \"a\" is in back-off until ")
		assert.ErrorContains(t, err, "device is busy")

		// vol-23: a volume whose tear-down failed is not mounted either: it is set up
		// again if a pod needs it again.
		_, err = n.Mount(t.Context(), p)
		require.NoError(t, err)
		assert.Equal(t, 6, n.plugin.Count("SetUp"))
		busy.Store(false)
		require.NoError(t, n.Unmount(t.Context(), p))
		assert.NoDirExists(t, filepath.Join(n.root, "pods/p"))
	})
}

// vol-19: one step at a time for a volume; the removal of a pod cancels its set-up
// (vol-12: and waits for it).
func TestUnmountCancelsSetUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
		var inside atomic.Int32
		n.plugin = &volumetest.Plugin{HalfWay: func(ctx context.Context, act, _ string) error {
			assert.EqualValues(t, 1, inside.Add(1))
			defer inside.Add(-1)
			if act == "SetUp" {
				<-ctx.Done()
				wait(time.Second)
				return ctx.Err()
			}
			return nil
		}}
		start(t, n)
		ctx, cancel := context.WithCancel(t.Context())
		mounted := make(chan error)
		go func() {
			_, err := n.Mount(ctx, pod("p", "data"))
			mounted <- err
		}()
		synctest.Wait()
		cancel()
		assert.ErrorIs(t, <-mounted, context.Canceled)
		assert.DirExists(t, filepath.Join(n.root, "pods/p/volumes/example.com~fake/data"), "it is partly set up")
		begun := time.Now()
		require.NoError(t, n.Unmount(t.Context(), pod("p", "data")))
		assert.Equal(t, time.Second, time.Since(begun))
		assert.Equal(t, 1, n.plugin.Count("TearDown"), "an uncertain volume is torn down (vol-21)")
		assert.NoDirExists(t, filepath.Join(n.root, "pods/p"))
		assert.Empty(t, n.emitted())
	})
}

// vol-21: after an error that states that nothing was set up, nothing is torn down.
func TestAFinalErrorLeavesNothingToTearDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
		n.plugin = &volumetest.Plugin{Fault: func(context.Context, string, string) error { return volume.Definite(volumetest.ErrFault) }}
		start(t, n, func(c *volume.Config) { c.WaitTimeout = time.Second })
		_, err := n.Mount(t.Context(), pod("p", "data"))
		require.ErrorIs(t, err, volumetest.ErrFault)
		require.NoError(t, n.Unmount(t.Context(), pod("p", "data")))
		assert.Zero(t, n.plugin.Count("TearDown"))
		assert.NoDirExists(t, filepath.Join(n.root, "pods/p"))
	})
}

// vol-10, vol-11: volumes that change are refreshed at each sync, when one
// of their objects changes, and at the time that they name.
func TestRefreshes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
		n.plugin = &volumetest.Plugin{
			Capabilities: volumetest.Capabilities{Refresh: true}, RefreshIn: time.Hour,
			Made: func(p *v1.Pod, _ *volume.Spec) []v1.ObjectReference {
				return []v1.ObjectReference{{Kind: "ConfigMap", Namespace: p.Namespace, Name: "conf"}}
			},
		}
		start(t, n)
		p := pod("p", "conf")
		refreshed := func() int { synctest.Wait(); return n.plugin.Count("Refresh") }
		_, err := n.Mount(t.Context(), p)
		require.NoError(t, err)
		assert.Zero(t, refreshed())
		_, err = n.Mount(t.Context(), p)
		require.NoError(t, err)
		assert.Equal(t, 1, refreshed())
		n.ObjectChanged("ConfigMap", "default", "conf")
		assert.Equal(t, 2, refreshed())
		n.ObjectChanged("ConfigMap", "default", "other")
		n.ObjectChanged("Secret", "default", "conf")
		assert.Equal(t, 2, refreshed())
		wait(time.Hour - 1)
		assert.Equal(t, 2, refreshed())
		wait(1)
		assert.Equal(t, 3, refreshed())
		assert.Equal(t, 1, n.plugin.Count("SetUp"))

		// A failed refresh is retried, and the volume is unchanged.
		n.plugin.Fault = func(_ context.Context, act, _ string) error {
			if act == "Refresh" && n.plugin.Count("Refresh") < 6 {
				return volumetest.ErrFault
			}
			return nil
		}
		n.ObjectChanged("ConfigMap", "default", "conf")
		_, err = n.Mount(t.Context(), p)
		require.NoError(t, err)
		wait(10 * time.Second)
		assert.Equal(t, 6, refreshed())
		require.NoError(t, n.Unmount(t.Context(), p))
		wait(2 * time.Hour)
		assert.Equal(t, 6, refreshed(), "not refreshed after Unmount")
	})
}

// a volume that waits for an object is set up when that comes, not when its
// back-off ends; and so with a driver (vol-64).
func TestAChangedDependencyEndsTheBackoff(t *testing.T) {
	for name, notify := range map[string]func(*node){
		"object": func(n *node) { n.ObjectChanged("Secret", "default", "s") },
		"driver": func(n *node) { n.PluginChanged("example.com/fake") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
				var there atomic.Bool
				n.plugin = &volumetest.Plugin{
					Made: func(*v1.Pod, *volume.Spec) []v1.ObjectReference { return []v1.ObjectReference{{Kind: "Secret"}} },
					Fault: func(context.Context, string, string) error {
						if there.Load() {
							return nil
						}
						return volumetest.ErrFault
					},
				}
				start(t, n)
				time.AfterFunc(40*time.Second, func() { there.Store(true); notify(n) })
				begun := time.Now()
				_, err := n.Mount(t.Context(), pod("p", "s"))
				require.NoError(t, err)
				assert.Equal(t, 40*time.Second, time.Since(begun))
			})
		})
	}
}

func TestManagerConfig(t *testing.T) {
	good := volume.Config{RootDir: "/r", Plugins: []volume.Plugin{new(volumetest.Plugin)}, Mounter: new(volumetest.Mounter)}
	for name, c := range map[string]struct {
		change func(*volume.Config)
		err    string
	}{
		"no root":       {func(c *volume.Config) { c.RootDir = "" }, `volume: Config.RootDir "" is not an absolute path`},
		"relative root": {func(c *volume.Config) { c.RootDir = "r" }, `volume: Config.RootDir "r" is not an absolute path`},
		"no plugins":    {func(c *volume.Config) { c.Plugins = nil }, "volume: Config.Plugins is empty"},
		"nil plugin":    {func(c *volume.Config) { c.Plugins = []volume.Plugin{nil} }, "volume: Config.Plugins[0] is nil"},
		"no mounter":    {func(c *volume.Config) { c.Mounter = nil }, "volume: Config.Mounter is nil"},
		"twice":         {func(c *volume.Config) { c.Plugins = append(c.Plugins, c.Plugins[0]) }, `volume: duplicate plugin name "example.com/fake"`},
		"bad name":      {func(c *volume.Config) { c.Plugins = []volume.Plugin{&volumetest.Plugin{Kind: ".."}} }, `volume: plugin name "..": is not a directory name`},
		"wait":          {func(c *volume.Config) { c.WaitTimeout = -1 }, "volume: Config.WaitTimeout is negative: -1ns"},
		"attach":        {func(c *volume.Config) { c.PersistentVolumes.AttachTimeout = -1 }, "volume: Config.PersistentVolumes.AttachTimeout is negative: -1ns"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good
			c.change(&cfg)
			_, err := volume.New(cfg)
			assert.EqualError(t, err, c.err)
		})
	}
	m, err := volume.New(good)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = m.Mount(ctx, pod("p", "v"))
	assert.EqualError(t, err, "volume: waiting for Manager.Run: context canceled")
	require.NoError(t, m.Run(ctx))
	assert.EqualError(t, m.Run(ctx), "volume: Manager.Run was called before")
}

// Bad input gets an error that names it, and nothing is written.
func TestNamesThatCannotBeDirectories(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, nil)
		long := make([]byte, 300)
		for i := range long {
			long[i] = 'a'
		}
		for _, name := range []string{"..", ".", "a/b", "a\x00b", string(long)} {
			_, err := n.Mount(t.Context(), pod("p", name))
			var failed *volume.PodError
			require.ErrorAs(t, err, &failed, "%q", name)
			assert.Equal(t, volume.NotProcessed, failed.Volumes[0].Phase)
		}
		for _, uid := range []string{"..", "a/b", ""} {
			_, err := n.Mount(t.Context(), pod(uid, "data"))
			require.Error(t, err, "%q", uid)
		}
		entries, err := os.ReadDir(n.root)
		require.NoError(t, err)
		assert.Empty(t, entries)
	})
}

// vol-81: each operation is reported under the kubelet's name for it.
func TestStepsAreObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter), plugin: staged()}
		n.plugin.Capabilities.Refresh = true
		n.plugin.Fault = func(_ context.Context, act, _ string) error {
			if act == "SetUp" && n.plugin.Count("SetUp") == 1 {
				wait(time.Second)
				return volumetest.ErrFault
			}
			return nil
		}
		start(t, n)
		for range 2 {
			_, err := n.Mount(t.Context(), pod("p", "data"))
			require.NoError(t, err)
			synctest.Wait()
		}
		desired, actual := n.VolumeCounts() // vol-35
		assert.Equal(t, map[string]int{"example.com/fake": 1}, desired)
		assert.Equal(t, desired, actual)
		require.NoError(t, n.Unmount(t.Context(), pod("p", "data")))
		synctest.Wait()
		desired, actual = n.VolumeCounts()
		assert.Empty(t, desired)
		assert.Empty(t, actual)
		n.mu.Lock()
		defer n.mu.Unlock()
		var seen []string
		for _, o := range n.ops {
			assert.Equal(t, "example.com/fake", o.Plugin)
			assert.Equal(t, "data", o.Volume)
			seen = append(seen, o.Operation)
		}
		require.Len(t, seen, 6)
		assert.Equal(t, []string{"volume_stage", "volume_mount", "volume_mount", "volume_refresh"}, seen[:4])
		// Nothing lies between the last two, whose hooks two goroutines call.
		assert.ElementsMatch(t, []string{"volume_unmount", "volume_unstage"}, seen[4:])
		assert.ErrorIs(t, n.ops[1].Err, volumetest.ErrFault)
		assert.Equal(t, time.Second, n.ops[1].Duration)
		assert.Zero(t, n.ops[1].Total)
		assert.Equal(t, 1500*time.Millisecond, n.ops[2].Total, "including the failed attempt and the back-off")
	})
}
