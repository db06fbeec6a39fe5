package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// An agent waits for a lock file that is locked, and stops when another agent opens it. The first waits
// for the test: the second need not wait if the first has ended before it tries.
func TestAnAgentReplacesOneThatHasTheLockFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := os.Create(path)
	require.NoError(t, err)
	defer lock.Close()
	require.NoError(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
	pages, err := os.MkdirTemp("", "pages") // short enough for addresses, which no other test gets
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(pages)) })
	first, second := newAgent(t, "process"), newAgent(t, "process")
	for i, a := range []*agent{first, second} {
		a.flags = []string{"--lock-file=" + path, "--exit-on-lock-contention", "--v=2"}
		a.listen = []string{fmt.Sprintf("--listen=unix://%s/%d", pages, i)}
	}
	first.launch()
	first.eventually("it waits", func() bool { return strings.Contains(first.out.String(), "Waiting for the lock file") })
	require.NotContains(t, first.out.String(), "shows what runs here")
	require.NoError(t, lock.Close())
	first.serves(0)

	second.start()
	_, _, err = first.get("/healthz")
	require.Error(t, err, "the second serves, and the first still does")
	require.NoError(t, first.cmd.Wait())
	require.Contains(t, first.out.String(), "Another process opened the lock file; stopping")
	require.NoError(t, second.interrupt())
}
