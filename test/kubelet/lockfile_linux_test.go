package kubelet

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnAgentReplacesOneThatHasTheLockFile(t *testing.T) {
	t.Parallel()
	lock := filepath.Join(t.TempDir(), "lock")
	first, second := newAgent(t, "process"), newAgent(t, "process")
	for _, a := range []*agent{first, second} {
		a.flags = []string{"--lock-file=" + lock, "--exit-on-lock-contention", "--v=2"}
	}
	first.start()
	second.start() // returns when it serves
	require.NoError(t, first.cmd.Wait())
	require.Contains(t, first.out.String(), "Another process opened the lock file; stopping")
	require.Contains(t, second.out.String(), "Waiting for the lock file")
	require.NoError(t, second.interrupt())
}
