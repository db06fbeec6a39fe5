//go:build linux || darwin

package process_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kubeparts/kubeparts/internal/untrusted"
	"github.com/kubeparts/kubeparts/runtime/process"
)

// nest creates n directories in each other, as a container can.
func nest(t *testing.T, dir string, n int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	for range n {
		require.NoError(t, unix.Mkdirat(at, "d", 0o755))
		next, err := unix.Openat(at, "d", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		_ = unix.Close(at)
		at = next
	}
	_ = unix.Close(at)
}

// os.RemoveAll opens a descriptor for each level: the container was not removed, and the
// next runtime on the directory did not start.
func TestAContainerThatNestsDirectoriesIsRemoved(t *testing.T) {
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	low := limit
	low.Cur = 256
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low))
	t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) })

	const depth = 1500
	n := newNode(t)
	s := n.sandbox("deep")
	id, err := n.CreateContainer(t.Context(), s, sh("main", "true"), nil)
	require.NoError(t, err)
	nest(t, filepath.Join(n.dir, "containers", id, "work"), depth)
	stats, err := n.ContainerStats(t.Context(), id)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, stats.GetWritableLayer().GetInodesUsed().GetValue(), uint64(depth))
	require.NoError(t, n.RemovePodSandbox(t.Context(), s))
	tmp := filepath.Join(n.dir, "tmp")
	left, err := os.ReadDir(tmp)
	require.NoError(t, err)
	assert.Empty(t, left)

	// What an interrupted removal has left is removed by the next start.
	require.NoError(t, n.Close(t.Context()))
	nest(t, tmp, depth)
	t.Cleanup(func() { assert.NoError(t, untrusted.RemoveTree(context.Background(), tmp)) })
	n.open(process.Config{})
	assert.NoDirExists(t, filepath.Join(tmp, "d"))
}
