package volume_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	mount "k8s.io/mount-utils"

	"github.com/kubeparts/kubeparts/volume"
)

// A walk that finishes at the moment its context is done has no data race; run with
// the race detector.
func TestOwnThatEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	for range 300 {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(cancel)
		if err := ownedBy(int64(os.Getegid())).SetOwnership(ctx, dir, false); err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
		wg.Wait()
	}
}

// A pod chooses the names in its volume; no names make the agent hold a descriptor for
// each level.
func TestATreeThatIsDeepAndFullOfDecoysIsRemovedWithFewDescriptors(t *testing.T) {
	root := filepath.Join(t.TempDir(), "v")
	require.NoError(t, os.Mkdir(root, 0o755))
	const depth = 400
	for i := range depth {
		require.NoError(t, os.Mkdir(filepath.Join(root, ".removed-"+strconv.Itoa(i)), 0o755))
	}
	for i := range 800 { // at least one is listed before all decoys
		require.NoError(t, os.Mkdir(filepath.Join(root, "c"+strconv.Itoa(i)), 0o755))
	}
	f, err := os.Open(root)
	require.NoError(t, err)
	names, err := f.Readdirnames(-1)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	at, err := unix.Open(filepath.Join(root, names[0]), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	require.NoError(t, err)
	for range depth {
		require.NoError(t, unix.Mkdirat(at, "d", 0o755))
		next, err := unix.Openat(at, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		require.NoError(t, err)
		require.NoError(t, unix.Close(at))
		at = next
	}
	require.NoError(t, unix.Close(at))
	var was unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	few := was
	few.Cur = 250
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
	defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was)) }()
	require.NoError(t, volume.RemoveTree(t.Context(), none{}, root))
	require.NoDirExists(t, root)
}

// none is a mounter of a machine on which nothing is mounted.
type none struct{ mount.Interface }

func (none) List() ([]mount.MountPoint, error) { return nil, nil }

func (none) IsMountPoint(string) (bool, error) { return false, nil }
