package volume_test

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/payload"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

const stuckVolume = "stuck"

// A stuckPlugin is the fake plugin, one method of which never returns for the volume with the name
// stuckVolume, as if a file system or a driver did not answer. It ignores the context.
type stuckPlugin struct {
	*volumetest.Plugin
	method  string
	armed   atomic.Bool
	entered chan struct{} // capacity 1
	release chan struct{}
}

func newStuckPlugin(method string, mounter *volumetest.Mounter) *stuckPlugin {
	p := &stuckPlugin{method: method, entered: make(chan struct{}, 1), release: make(chan struct{})}
	p.armed.Store(true)
	p.Plugin = &volumetest.Plugin{
		Mounter: mounter,
		Shared:  func(s *volume.Spec) string { return s.DirName() },
		Fault: func(_ context.Context, act, name string) error {
			p.call(act, name)
			return nil
		},
		Made: func(*v1.Pod, *volume.Spec) []v1.ObjectReference {
			return []v1.ObjectReference{{Kind: payload.KindSecret}}
		},
		Capabilities: volumetest.Capabilities{
			Refresh: true, Attach: true, Block: true, SELinux: true,
		},
	}
	return p
}

func (p *stuckPlugin) call(method, name string) {
	if method == p.method && name == stuckVolume && p.armed.Load() {
		select {
		case p.entered <- struct{}{}:
		default:
		}
		<-p.release
	}
}

func (p *stuckPlugin) CanSupport(s *volume.Spec) bool {
	p.call("CanSupport", s.Name())
	return p.Plugin.CanSupport(s)
}

func (p *stuckPlugin) ConstructSpec(at volume.Place) (*volume.Spec, error) {
	p.call("ConstructSpec", at.Name)
	return p.Plugin.ConstructSpec(at)
}

func (p *stuckPlugin) Refreshes(s *volume.Spec) bool {
	p.call("Refreshes", s.DirName())
	return p.Plugin.Refreshes(s)
}

func (p *stuckPlugin) ObjectRefs(pod *v1.Pod, s *volume.Spec) []v1.ObjectReference {
	p.call("ObjectRefs", s.DirName())
	return p.Plugin.ObjectRefs(pod, s)
}

func (p *stuckPlugin) NeedsAttach(ctx context.Context, s *volume.Spec) (bool, error) {
	p.call("NeedsAttach", s.DirName())
	return p.Plugin.NeedsAttach(ctx, s)
}

func (p *stuckPlugin) AttachLimitExceeded(_ context.Context, s *volume.Spec) (bool, error) {
	p.call("AttachLimitExceeded", s.DirName())
	return false, nil
}

func (p *stuckPlugin) SharedName(s *volume.Spec) (string, error) {
	p.call("SharedName", s.DirName())
	return p.Plugin.SharedName(s)
}

func (p *stuckPlugin) SupportsSELinuxMount(ctx context.Context, s *volume.Spec) (bool, error) {
	p.call("SupportsSELinuxMount", s.DirName())
	return p.Plugin.SupportsSELinuxMount(ctx, s)
}

func (p *stuckPlugin) Health(_ context.Context, at volume.Place) ([]v1.VolumeHealthCondition, error) {
	p.call("Health", at.Name)
	return nil, nil
}

// A stuckNode is a manager with a stuckPlugin, in a bubble.
type stuckNode struct {
	*volume.Manager
	t        *testing.T
	root     string
	mounter  *volumetest.Mounter
	plugin   *stuckPlugin
	claims   *claims
	attached bool
	stop     func() // and checks that Run returns soon
}

func (n *stuckNode) start(ctx context.Context) {
	n.t.Helper()
	n.claims = new(claims).bound("claim", func(c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) {
		pv.Name, c.Spec.VolumeName = stuckVolume, stuckVolume
		pv.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
		pv.Spec.MountOptions = []string{"noatime"}
		c.Status.Capacity = pv.Spec.Capacity
	})
	m, err := volume.New(volume.Config{
		RootDir: n.root, Plugins: []volume.Plugin{n.plugin}, Mounter: n.mounter, StatsPeriod: time.Minute,
		HealthChanged: func(types.UID) {},
		SELinuxLabel:  func(*v1.SELinuxOptions) (string, error) { return "label", nil },
		PersistentVolumes: volume.PersistentVolumeConfig{Claims: n.claims, Node: apiNode{attached: func(name v1.UniqueVolumeName) (string, bool) {
			return "", n.attached || name != "example.com/fake/"+stuckVolume
		}}},
	})
	require.NoError(n.t, err)
	n.Manager = m
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = m.Run(ctx)
	}()
	n.stop = func() {
		begun := time.Now()
		cancel()
		<-ended
		assert.LessOrEqual(n.t, time.Since(begun), 3*time.Second, "Run returns soon")
	}
}

// stuckPod returns the pod whose volume does not answer.
func stuckPod() *v1.Pod { return claimPod("a", "claim") }

// mount mounts the volume of the stuck pod in the background.
func (n *stuckNode) mount(ctx context.Context) {
	go func() { _, _ = n.Mount(ctx, stuckPod()) }()
}

// orphans is the keep function of Collect; the pods "gone" and "later" were deleted.
func orphans(uid types.UID) bool { return uid != "gone" && uid != "later" }

// stuckMethods are the methods of plugins that may access a file system, a driver or the API, and the
// actions that make the manager call them.
var stuckMethods = map[string]func(t *testing.T, n *stuckNode){
	"CanSupport":           func(t *testing.T, n *stuckNode) { go func() { _, _ = n.Mount(t.Context(), pod("a", stuckVolume)) }() },
	"SharedName":           func(t *testing.T, n *stuckNode) { n.mount(t.Context()) },
	"ObjectRefs":           func(t *testing.T, n *stuckNode) { n.mount(t.Context()) },
	"NeedsAttach":          func(t *testing.T, n *stuckNode) { n.mount(t.Context()) },
	"SupportsSELinuxMount": func(t *testing.T, n *stuckNode) { n.mount(t.Context()) },
	"AttachLimitExceeded": func(t *testing.T, n *stuckNode) {
		n.attached = false
		n.mount(t.Context())
	},
	"Stage": func(t *testing.T, n *stuckNode) { n.mount(t.Context()) },
	"SetUp": func(t *testing.T, n *stuckNode) { n.mount(t.Context()) },
	"Refreshes": func(t *testing.T, n *stuckNode) {
		n.plugin.armed.Store(false)
		_, err := n.Mount(t.Context(), stuckPod())
		require.NoError(t, err)
		n.plugin.armed.Store(true)
		go n.ObjectChanged(payload.KindSecret, "", "")
		n.mount(t.Context())
	},
	"Refresh": func(t *testing.T, n *stuckNode) {
		_, err := n.Mount(t.Context(), stuckPod())
		require.NoError(t, err)
		n.mount(t.Context())
	},
	"Expand": func(t *testing.T, n *stuckNode) {
		_, err := n.Mount(t.Context(), stuckPod())
		require.NoError(t, err)
		larger := n.claims.pvs[stuckVolume].DeepCopy()
		larger.Spec.Capacity[v1.ResourceStorage] = resource.MustParse("2Gi")
		n.claims.pvs[stuckVolume] = larger
		n.mount(t.Context())
	},
	"Stats": func(t *testing.T, n *stuckNode) {
		_, err := n.Mount(t.Context(), stuckPod())
		require.NoError(t, err)
	},
	"Health": func(t *testing.T, n *stuckNode) {
		_, err := n.Mount(t.Context(), stuckPod())
		require.NoError(t, err)
	},
	"TearDown": func(t *testing.T, n *stuckNode) {
		_, err := n.Mount(t.Context(), stuckPod())
		require.NoError(t, err)
		go func() { _ = n.Unmount(t.Context(), stuckPod()) }()
	},
	"Unstage": func(t *testing.T, n *stuckNode) {
		_, err := n.Mount(t.Context(), stuckPod())
		require.NoError(t, err)
		go func() { _ = n.Unmount(t.Context(), stuckPod()) }()
	},
	"ConstructSpec": func(t *testing.T, n *stuckNode) {
		_, err := n.Mount(t.Context(), stuckPod())
		require.NoError(t, err)
		n.stop()
		records, err := filepath.Glob(filepath.Join(n.root, "pods/*/volume-*.json"))
		require.NoError(t, err)
		require.NotEmpty(t, records)
		for _, path := range records {
			require.NoError(t, os.Remove(path)) // as if a kubelet had mounted it
		}
		n.start(t.Context())
	},
	"volume.Mounter.Unmount": func(t *testing.T, n *stuckNode) { // Collect removes the directory of a deleted pod
		_, err := n.Mount(t.Context(), stuckPod())
		require.NoError(t, err)
		require.NoError(t, n.Unmount(t.Context(), stuckPod()))
		dir := volume.Place{RootDir: n.root, PodUID: "gone", Plugin: "example.com/fake", Name: stuckVolume}.Dir()
		require.NoError(t, os.MkdirAll(dir, 0o750))
		require.NoError(t, n.mounter.Mount("server:/", dir, "nfs", nil))
		n.mounter.Fault = func(act, path string) error {
			if act == "unmount" && path == dir {
				n.plugin.call("volume.Mounter.Unmount", stuckVolume)
			}
			return nil
		}
		require.NoError(t, os.MkdirAll(filepath.Join(n.root, "pods/later/volumes"), 0o750))
		go func() { _ = n.Retain(t.Context(), orphans) }()
	},
}

// The suite has every method of the interfaces of plugins, except those that return a constant.
func TestAllMethodsOfPluginsAreTriedWithoutAnAnswer(t *testing.T) {
	for _, of := range []reflect.Type{
		reflect.TypeFor[volume.Plugin](), reflect.TypeFor[volume.Refresher](), reflect.TypeFor[volume.ObjectReferrer](),
		reflect.TypeFor[volume.Attacher](), reflect.TypeFor[volume.Attacher](), reflect.TypeFor[volume.Stager](),
		reflect.TypeFor[volume.Expander](), reflect.TypeFor[volume.MountOptioner](), reflect.TypeFor[volume.BlockMapper](),
		reflect.TypeFor[volume.SELinuxMounter](), reflect.TypeFor[volume.HealthReporter](),
	} {
		for i := range of.NumMethod() {
			switch name := of.Method(i).Name; name {
			case "Name", "SupportsMountOptions", "SupportsBlock":
			default:
				assert.Contains(t, stuckMethods, name)
			}
		}
	}
}

// A plugin that never returns from one of its methods delays its own pod only: another pod of the plugin
// mounts, is measured and unmounts, orphaned pods are collected, and the manager stops soon.
func TestAPluginThatNeverReturnsDelaysNoOtherPod(t *testing.T) {
	for method, act := range stuckMethods {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &stuckNode{t: t, root: t.TempDir(), mounter: new(volumetest.Mounter), attached: true}
				n.plugin = newStuckPlugin(method, n.mounter)
				n.start(t.Context())
				act(t, n)
				select {
				case <-n.plugin.entered:
				case <-time.After(time.Hour):
					close(n.plugin.release)
					t.Fatal("the method was not called")
				}

				soon := func(what string, limit time.Duration, f func()) {
					begun := time.Now()
					f()
					assert.LessOrEqual(t, time.Since(begun), limit, what)
				}
				limit := time.Second
				if method == "ConstructSpec" {
					limit = 11 * time.Second // once, at the start
				}
				other := pod("b", "fine")
				soon("mount", limit, func() {
					_, err := n.Mount(t.Context(), other)
					require.NoError(t, err)
				})
				for range 10 {
					wait(4 * time.Minute) // each pod is measured within two periods
					list := n.Stats("b")
					if assert.Len(t, list, 1) {
						assert.LessOrEqual(t, time.Since(list[0].Time.Time), 3*time.Minute)
					}
					soon("refresh", time.Second, func() {
						_, err := n.Mount(t.Context(), other)
						require.NoError(t, err)
					})
				}
				assert.NoDirExists(t, filepath.Join(n.root, "pods/later"), "another orphan")
				soon("unmount", time.Second, func() { require.NoError(t, n.Unmount(t.Context(), other)) })
				soon("collect", 11*time.Second, func() {
					require.NoError(t, n.Retain(t.Context(), orphans))
				})
				n.stop()
				close(n.plugin.release)
				synctest.Wait()
			})
		})
	}
}

// Volumes that never answer occupy the slots of the measurement for a short time and are not asked again:
// all other pods are measured on time. The usage that was measured before remains.
func TestVolumesThatDoNotAnswerDoNotStopMeasuring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, silent := make(chan struct{}), make(chan struct{})
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
		n.plugin = &volumetest.Plugin{Mounter: n.mounter, Fault: func(_ context.Context, act, name string) error {
			if act != "Stats" || name != stuckVolume {
				return nil
			}
			select {
			case <-silent: // the server goes silent later
				<-release
			default:
			}
			return nil
		}}
		start(t, n, func(c *volume.Config) { c.StatsPeriod = time.Minute })
		uids := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
		for _, uid := range uids {
			_, err := n.Mount(t.Context(), pod(uid, stuckVolume, "z"))
			require.NoError(t, err)
		}
		_, err := n.Mount(t.Context(), pod("other", "fine"))
		require.NoError(t, err)
		wait(3 * time.Minute)
		for _, uid := range uids {
			assert.Len(t, n.Stats(types.UID(uid)), 2)
		}
		close(silent)
		wait(3 * time.Minute)
		before := n.plugin.Count("Stats")
		wait(10 * time.Minute)
		assert.Greater(t, n.plugin.Count("Stats"), before)
		for _, uid := range append(uids, "other") {
			for _, s := range n.Stats(types.UID(uid)) {
				if s.Name == stuckVolume {
					assert.Greater(t, time.Since(s.Time.Time), 10*time.Minute, "of before")
				} else {
					assert.LessOrEqual(t, time.Since(s.Time.Time), 3*time.Minute, "%s of %s", s.Name, uid)
				}
			}
		}
		begun := time.Now()
		n.stop()
		assert.LessOrEqual(t, time.Since(begun), 3*time.Second)
		close(release)
		synctest.Wait()
	})
}
