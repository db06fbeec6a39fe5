package volume

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Both ways of keeping a path in a volume keep it there (vol-69, vol-70): that of
// the kernel, and that for kernels which do not know it.
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
			for _, path := range []string{".", "..data", "key", "key/made", "made/too"} {
				fd, err := openSubPath(root, path, open)
				require.NoError(t, err, path)
				unix.Close(fd)
			}
			assert.DirExists(t, filepath.Join(root, "..2026/deep/made"))
			for _, path := range []string{"out", "out/secret", "out/made", "dangling", "dangling/x"} {
				_, err := openSubPath(root, path, open)
				assert.Error(t, err, path)
			}
			assert.NoDirExists(t, filepath.Join(outside, "made"))
			_, err := openSubPath(filepath.Join(root, "none"), ".", open)
			assert.ErrorIs(t, err, unix.ENOENT)
		})
	}
}
