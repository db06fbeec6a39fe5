package volume

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Pods without volumes are the majority on a node of short jobs; no state is kept for
// them.
func TestNoStateIsKeptForTerminatedPods(t *testing.T) {
	m := &Manager{cfg: Config{RootDir: t.TempDir(), WaitTimeout: time.Second}, reconstructed: make(chan struct{}), world: newWorld(), changed: map[types.UID]chan struct{}{}}
	m.stats = newMeter(m)
	close(m.reconstructed)
	pod := new(v1.Pod)
	pod.UID = "p"
	_, err := m.Mount(t.Context(), pod)
	require.NoError(t, err)
	require.NoError(t, m.Unmount(t.Context(), pod))
	assert.Empty(t, m.changed)
}

// A volume that is checked many times before it is due has one timer.
func TestAVolumeHasOneTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		v := w.add(Place{PodUID: "p", Name: "v"})
		d := w.addDevice("d", nil, nil)
		at := time.Now().Add(time.Hour)
		for range 100 {
			w.wake(v, at)
			w.wakeDevice(d, at)
		}
		assert.Len(t, w.timers, 2)
		assert.Equal(t, at, w.due(time.Now()))
		assert.Zero(t, w.due(at))
		assert.Len(t, w.dirty, 1)
		assert.Len(t, w.dirtyDevices, 1)
		clear(w.dirty)
		w.wake(v, at) // the same once more
		assert.Zero(t, w.due(at))
		assert.Len(t, w.dirty, 1)
		w.wake(v, at.Add(time.Hour))
		w.wake(v, time.Time{})
		assert.Zero(t, w.due(at))
	})
}

// vol-69: a directory of a subPath has the mode of the volume, also where the kernel
// has no call that changes it without following a link (before Linux 6.6), and
// whatever the umask.
func TestDirectoriesOfSubPathsHaveTheModeOfTheVolume(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Chmod(root, 0o777))
	fd, err := openSubPath(root, "a/b", openInside)
	require.NoError(t, err)
	require.NoError(t, os.NewFile(uintptr(fd), "b").Close())
	for _, path := range []string{"a", "a/b"} {
		info, err := os.Stat(filepath.Join(root, path))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o777), info.Mode().Perm())
	}
}
