package volume

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Both implementations keep a path in a volume (vol-69, vol-70): the kernel's, and the
// one for kernels without it.
func TestPathsAreKeptInTheVolume(t *testing.T) {
	for name, open := range map[string]opens{"openat2": openInside, "stepwise": openStepwise} {
		t.Run(name, func(t *testing.T) {
			root, outside := t.TempDir(), t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), nil, 0o600))
			require.NoError(t, os.MkdirAll(filepath.Join(root, "..2026", "deep"), 0o755))
			require.NoError(t, os.Symlink("..2026", filepath.Join(root, "..data")))
			require.NoError(t, os.Symlink("..data/deep", filepath.Join(root, "key")))
			require.NoError(t, os.Symlink(outside, filepath.Join(root, "out")))
			require.NoError(t, os.Symlink("nowhere", filepath.Join(root, "dangling")))
			require.NoError(t, os.Symlink(filepath.Join(root, "..2026"), filepath.Join(root, "absolute")))
			require.NoError(t, os.Symlink("../"+filepath.Base(root)+"/..2026", filepath.Join(root, "around")))
			require.NoError(t, os.Symlink(filepath.Join(root, "absolute", "deep"), filepath.Join(root, "twice")))
			require.NoError(t, os.Symlink(root, filepath.Join(outside, "back")))
			require.NoError(t, os.Symlink(filepath.Join(outside, "back"), filepath.Join(root, "out-and-back")))
			require.NoError(t, os.Symlink(filepath.Join(root, "nowhere"), filepath.Join(root, "absolute-dangling")))
			require.NoError(t, os.Symlink(filepath.Join(outside, "made"), filepath.Join(root, "dangling-outside")))
			require.NoError(t, os.Symlink(filepath.Join(root, "loop"), filepath.Join(root, "loop")))
			require.NoError(t, os.Symlink("/proc/self/root"+outside, filepath.Join(root, "magic")))
			require.NoError(t, os.Symlink(root+"-sibling", filepath.Join(root, "prefix")))
			require.NoError(t, os.Mkdir(root+"-sibling", 0o755))
			t.Cleanup(func() { _ = os.RemoveAll(root + "-sibling") })
			desiredVolume := map[string]string{
				"absolute": "..2026", "absolute/deep": "..2026/deep", "around/deep": "..2026/deep", "twice": "..2026/deep",
				"out-and-back": ".", "out-and-back/..data/deep": "..2026/deep", "absolute/new": "..2026/new", "..data": "..2026", "key": "..2026/deep",
			}
			for path, at := range desiredVolume {
				fd, err := openSubPath(root, path, open)
				require.NoError(t, err, path)
				var got, is unix.Stat_t
				require.NoError(t, unix.Fstat(fd, &got))
				unix.Close(fd)
				require.NoError(t, unix.Stat(filepath.Join(root, at), &is), path)
				assert.Equal(t, is.Ino, got.Ino, path)
			}
			for _, path := range []string{".", "..data", "key", "key/made", "made/too"} {
				fd, err := openSubPath(root, path, open)
				require.NoError(t, err, path)
				unix.Close(fd)
			}
			assert.DirExists(t, filepath.Join(root, "..2026/deep/made"))
			for _, path := range []string{
				"out", "out/secret", "out/made", "dangling", "dangling/x", "absolute-dangling", "absolute-dangling/x", "dangling-outside", "dangling-outside/x",
				"out-and-back/out", "out-and-back/out/made", "absolute/../out", "loop", "loop/x", "magic", "magic/secret", "magic/made", "prefix", "prefix/made",
			} {
				_, err := openSubPath(root, path, open)
				assert.Error(t, err, path)
			}
			for _, dir := range []string{outside, root + "-sibling"} {
				entries, err := os.ReadDir(dir)
				require.NoError(t, err)
				for _, e := range entries {
					assert.Contains(t, []string{"secret", "back"}, e.Name(), "nothing was made outside")
				}
			}
			require.NoError(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(root, "to-file")))
			require.NoError(t, os.Symlink(filepath.Join(outside, "none"), filepath.Join(root, "to-nothing")))
			for _, path := range []string{"out/x", "to-file", "to-file/x", "to-nothing", "to-nothing/x"} {
				_, err := openSubPath(root, path, open)
				assert.Equal(t, errEscapes, err, "%s: the error is the same whether or not the target exists", path)
			}
			_, err := openSubPath(filepath.Join(root, "none"), ".", open)
			assert.ErrorIs(t, err, unix.ENOENT)
		})
	}
}

// A link that leads into the volume is swapped repeatedly for one that leads out of
// it: the opened file is always in the volume.
func TestPathsAreKeptInTheVolumeWhileLinksAreSwapped(t *testing.T) {
	for name, open := range map[string]opens{"openat2": openInside, "stepwise": openStepwise} {
		t.Run(name, func(t *testing.T) {
			root, outside := t.TempDir(), t.TempDir()
			require.NoError(t, os.MkdirAll(filepath.Join(root, "dir", "sub"), 0o755))
			require.NoError(t, os.Mkdir(filepath.Join(outside, "sub"), 0o755))
			require.NoError(t, os.Symlink(filepath.Join(root, "dir"), filepath.Join(root, "link")))
			require.NoError(t, os.Symlink(outside, filepath.Join(root, "other")))
			var inside unix.Stat_t
			require.NoError(t, unix.Stat(filepath.Join(root, "dir/sub"), &inside))
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			defer wg.Wait()
			defer cancel()
			for _, pair := range [][2]string{{"link", "other"}, {"dir", "other"}} {
				wg.Go(func() {
					a, b := filepath.Join(root, pair[0]), filepath.Join(root, pair[1])
					for ctx.Err() == nil {
						_ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
					}
				})
			}
			opened := 0
			for range 2000 {
				fd, err := openSubPath(root, "link/sub", open)
				if err != nil {
					continue
				}
				opened++
				var st unix.Stat_t
				require.NoError(t, unix.Fstat(fd, &st))
				unix.Close(fd)
				require.Equal(t, inside.Ino, st.Ino)
			}
			t.Logf("opened %d of 2000", opened)
			cancel()
			wg.Wait()
			entries, err := os.ReadDir(filepath.Join(outside, "sub"))
			require.NoError(t, err)
			assert.Empty(t, entries)
		})
	}
}
