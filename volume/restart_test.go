package volume_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// found collects the volumes that a start reconstructs.
type found []reconstructed

// A reconstructed is a call of volume.Hooks.Reconstructed.
type reconstructed struct {
	at       volume.Place
	recorded bool
	err      error
}

func (f *found) hook(c *volume.Config) {
	c.Hooks.Reconstructed = func(at volume.Place, recorded bool, err error) { *f = append(*f, reconstructed{at, recorded, err}) }
}

func noPod(types.UID) bool { return false }

// vol-32, vol-35: after a restart each volume is reconstructed from its checkpoint,
// and is not changed before it is certain whether its pod is desired (vol-14, vol-15).
func TestVolumesAreReconstructedAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, nil)
		for _, uid := range []string{"stays", "goes"} {
			_, err := n.Mount(t.Context(), pod(uid, "a", "b"))
			require.NoError(t, err)
		}
		n.stop()
		var seen found
		n.plugin = &volumetest.Plugin{Mounter: n.mounter, Unknown: true} // it need not be called
		start(t, n, seen.hook)
		synctest.Wait()
		require.Len(t, seen, 4)
		for _, i := range seen {
			assert.True(t, i.recorded)
			assert.NoError(t, i.err)
		}
		wait(time.Hour)
		assert.Zero(t, n.plugin.Count("TearDown")+n.plugin.Count("SetUp"))
		require.NoError(t, n.Retain(t.Context(), func(types.UID) bool { return true })) // the sources have not spoken
		synctest.Wait()
		assert.Len(t, n.mounter.Below(n.root), 4)

		_, err := n.Mount(t.Context(), pod("stays", "a", "b"))
		require.NoError(t, err)
		require.NoError(t, n.Retain(t.Context(), func(uid types.UID) bool { return uid == "stays" }))
		synctest.Wait()
		assert.Len(t, n.mounter.Below(n.root), 2)
		assert.NoDirExists(t, filepath.Join(n.root, "pods/goes"))
		assert.FileExists(t, filepath.Join(n.root, "pods/stays/volumes/example.com~fake/a/file"))
		require.NoError(t, n.Retain(t.Context(), noPod), "a pod that was mounted is not collected")
		synctest.Wait()
		assert.Len(t, n.mounter.Below(n.root), 2)
		require.NoError(t, n.Unmount(t.Context(), pod("stays"))) // the UID counts
		assert.NoDirExists(t, filepath.Join(n.root, "pods/stays"))
	})
}

func TestVolumesOfRemovedPodsAreReleasedByUID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, nil)
		var want, got []types.UID
		for uid := 'a'; uid <= 'j'; uid++ {
			_, err := n.Mount(t.Context(), pod(string(uid), "a"))
			require.NoError(t, err)
			want = append(want, types.UID(uid))
		}
		require.NoError(t, n.Retain(t.Context(), func(uid types.UID) bool {
			if len(got) < len(want) { // later calls are for directories
				got = append(got, uid)
			}
			return true
		}))
		assert.Equal(t, want, got)
	})
}

// vol-32, vol-34: without checkpoints the plugin reconstructs volumes; directories of
// unknown kinds are cleaned when their pod has been deleted.
func TestWithoutRecordsTheDirectoriesAreRead(t *testing.T) {
	for name, unknown := range map[string]bool{"constructed": false, "force-cleaned": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
				kind := map[bool]string{true: "kubernetes.io/configmap"}[unknown]
				n.plugin = &volumetest.Plugin{Kind: kind, Mounter: n.mounter}
				start(t, n)
				_, err := n.Mount(t.Context(), pod("p", "a"))
				require.NoError(t, err)
				n.stop()
				records, err := filepath.Glob(filepath.Join(n.root, "pods/p/volume-*.json"))
				require.NoError(t, err)
				require.Len(t, records, 1)
				require.NoError(t, os.WriteFile(records[0], []byte(`{"version":1,`), 0o600))
				var seen found
				n.plugin = &volumetest.Plugin{Kind: kind, Mounter: n.mounter, Unknown: unknown}
				start(t, n, seen.hook)
				synctest.Wait()
				require.Len(t, seen, 1)
				assert.False(t, seen[0].recorded)
				assert.Equal(t, unknown, seen[0].err != nil)
				require.NoError(t, n.Retain(t.Context(), noPod))
				synctest.Wait()
				assert.Equal(t, !unknown, n.plugin.Count("TearDown") == 1)
				last := n.ops[len(n.ops)-1]
				assert.Equal(t, "volume_unmount", last.Operation)
				assert.Equal(t, unknown, last.Forced) // vol-35
				assert.Empty(t, n.mounter.Below(n.root))
				assert.NoDirExists(t, filepath.Join(n.root, "pods/p"))
			})
		})
	}
}

// vol-34: a desired volume that could not be reconstructed is mounted normally.
func TestADesiredVolumeThatCannotBeReconstructedIsSetUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
		require.NoError(t, os.MkdirAll(filepath.Join(n.root, "pods/p/volumes/example.com~fake/a"), 0o750))
		n.plugin = &volumetest.Plugin{Unknown: true}
		start(t, n)
		_, err := n.Mount(t.Context(), pod("p", "a"))
		require.NoError(t, err)
		require.NoError(t, n.Retain(t.Context(), noPod))
		synctest.Wait()
		assert.FileExists(t, filepath.Join(n.root, "pods/p/volumes/example.com~fake/a/file"))
	})
}

// vol-20, vol-33: a staged device is reconstructed after a restart, and unstaged when
// the last pod that uses it is gone.
func TestDevicesAreReconstructedAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter), plugin: staged()}
		with := func(c *volume.Config) { c.PersistentVolumes.Claims = new(claims).bound("c").bound("d") }
		start(t, n, with)
		_, err := n.Mount(t.Context(), claimPod("p", "c"))
		require.NoError(t, err)
		n.stop()
		n.plugin = staged()
		start(t, n, with)
		synctest.Wait()
		assert.Len(t, n.VolumesInUse(), 1)
		assert.Zero(t, n.plugin.Count("Unstage"))
		require.NoError(t, n.Retain(t.Context(), noPod))
		synctest.Wait()
		assert.Equal(t, 1, n.plugin.Count("Unstage"))
		assert.Empty(t, n.VolumesInUse())

		// Killed between the two: the pod's record is gone, the device's is not.
		n.plugin.Fault = func(ctx context.Context, act, _ string) error {
			if act == "Unstage" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		_, err = n.Mount(t.Context(), claimPod("p", "d"))
		require.NoError(t, err)
		require.NoError(t, n.Unmount(t.Context(), claimPod("p", "d")))
		n.stop()
		n.plugin = staged()
		start(t, n, with)
		synctest.Wait()
		assert.Equal(t, 1, n.plugin.Count("Unstage"))
	})
}

// vol-36 … vol-38: directories of unknown pods.
func TestOrphanedDirectories(t *testing.T) {
	const local, foreign = "kubernetes.io~empty-dir", "example.com~nfs"
	for name, c := range map[string]struct {
		files, dirs []string // in the pod's directory
		mounts      []string
		stuck       bool // nothing can be unmounted
		err         string
		left        []string
	}{
		"empty (vol-38)":             {},
		"empty volumes (vol-37)":     {dirs: []string{"volumes/" + local + "/a", "volumes/" + foreign + "/b", "plugins/x"}, files: []string{"etc-hosts", "containers/c/log"}},
		"the pod's own data":         {files: []string{"volumes/" + local + "/a/deep/file"}},
		"foreign data (vol-37)":      {files: []string{"volumes/" + foreign + "/b/file", "etc-hosts"}, err: `orphaned pod "p" found, but failed to rmdir() volume at path `, left: []string{"volumes/" + foreign + "/b/file", "etc-hosts"}},
		"mounted":                    {dirs: []string{"volumes/" + foreign + "/b"}, mounts: []string{"volumes/" + foreign + "/b"}},
		"cannot be unmounted":        {files: []string{"volumes/" + local + "/a/file"}, mounts: []string{"volumes/" + local + "/a"}, stuck: true, err: "something is mounted there", left: []string{"volumes/" + local + "/a/file"}}, // vol-36
		"sub-paths (vol-37, vol-70)": {files: []string{"volume-subpaths/a/c/0"}, dirs: []string{"volume-subpaths/a/c/1"}, mounts: []string{"volume-subpaths/a/c/1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
				n.plugin = new(volumetest.Plugin)
				var got []error
				var rounds [][2]int // orphans, and how many could not be removed
				var log bytes.Buffer
				start(t, n, func(cfg *volume.Config) {
					cfg.Hooks.Orphan = func(_ types.UID, err error) { got = append(got, err) }
					cfg.Hooks.Collected = func(orphans, failed int) { rounds = append(rounds, [2]int{orphans, failed}) }
					cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
				})
				synctest.Wait() // it is added after the start
				dir := filepath.Join(n.root, "pods/p")
				require.NoError(t, os.MkdirAll(dir, 0o750))
				for _, d := range c.dirs {
					require.NoError(t, os.MkdirAll(filepath.Join(dir, d), 0o750))
				}
				for _, f := range c.files {
					require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o750))
					require.NoError(t, os.WriteFile(filepath.Join(dir, f), []byte(strings.TrimPrefix(f, "volume-subpaths/a/c/0")), 0o600))
				}
				for _, at := range c.mounts {
					require.NoError(t, n.mounter.Mount("x", filepath.Join(dir, at), "", nil))
				}
				if c.stuck {
					n.mounter.Fault = func(string, string) error { return errors.New("busy") }
				}
				require.NoError(t, n.Retain(t.Context(), func(types.UID) bool { return true }))
				assert.Empty(t, got)
				assert.DirExists(t, dir)
				for range 5 { // one line an hour, whatever happens
					require.NoError(t, n.Retain(t.Context(), noPod))
					wait(time.Minute)
				}
				for _, f := range c.left {
					assert.FileExists(t, filepath.Join(dir, f))
				}
				require.Len(t, rounds, 6)
				assert.Equal(t, [2]int{}, rounds[0])
				if c.err == "" {
					require.Len(t, got, 1)
					assert.Equal(t, [2]int{1, 0}, rounds[1])
					assert.Equal(t, [2]int{}, rounds[2])
					assert.NoError(t, got[0])
					assert.NoDirExists(t, dir)
					assert.Empty(t, n.mounter.Below(n.root))
					assert.Empty(t, log.String())
					return
				}
				require.Len(t, got, 5)
				assert.Equal(t, [2]int{1, 1}, rounds[5])
				assert.ErrorContains(t, got[0], c.err)
				assert.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
				wait(time.Hour)
				require.NoError(t, n.Retain(t.Context(), noPod))
				assert.Equal(t, 2, strings.Count(log.String(), "\n"))
			})
		})
	}
}

// A pod that returns with the same UID waits until the directory of the earlier one is
// removed, and then gets a new one.
func TestAPodWaitsForTheDirectoryOfItsPredecessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter), plugin: new(volumetest.Plugin)}
		start(t, n)
		synctest.Wait()
		require.NoError(t, os.MkdirAll(filepath.Join(n.root, "pods/p/volumes"), 0o750))
		asked := 0
		mounted := make(chan error, 1)
		require.NoError(t, n.Retain(t.Context(), func(types.UID) bool {
			if asked++; asked == 2 { // now it is being swept
				go func() {
					_, err := n.Mount(t.Context(), pod("p", "a"))
					mounted <- err
				}()
				wait(time.Second)
				assert.Empty(t, mounted)
			}
			return false
		}))
		require.NoError(t, <-mounted)
		assert.FileExists(t, filepath.Join(n.root, "pods/p/volumes/example.com~fake/a/file"))
	})
}
