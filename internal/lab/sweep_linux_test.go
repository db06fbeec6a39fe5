package lab

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSweepDeadTakesOnlyWhatDeadTestsLeft(t *testing.T) {
	tmp := t.TempDir()
	gone := exec.Command("true")
	require.NoError(t, gone.Run())
	dead := filepath.Join(tmp, fmt.Sprintf("%s%d-1", dirPrefix, gone.Process.Pid))
	living := filepath.Join(tmp, fmt.Sprintf("%s%d-1", dirPrefix, os.Getpid()))
	other := filepath.Join(tmp, dirPrefix+"of-someone")
	for _, dir := range []string{dead, living, other} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "root"), 0o700))
	}

	require.NoError(t, sweepDead(tmp))
	require.NoDirExists(t, dead)
	require.DirExists(t, living)
	require.DirExists(t, other)
}

func TestSweepEndsProcessesThatNameTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	ours := exec.Command("sh", "-c", "read x; exit 0", dir+"/config.toml")
	stdin, err := ours.StdinPipe() // held open: it waits for a line
	require.NoError(t, err)
	defer stdin.Close()
	require.NoError(t, ours.Start())
	ended := make(chan error, 1)
	go func() { ended <- ours.Wait() }()
	require.Eventually(t, func() bool { // just after Start, the kernel may not have the arguments yet
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", ours.Process.Pid))
		return err == nil && bytes.Contains(args, []byte(dir))
	}, time.Minute, time.Millisecond)

	require.NoError(t, sweep(dir))
	require.ErrorContains(t, <-ended, "killed")
	require.NoDirExists(t, dir)
	require.NoError(t, sweep(dir), "a second sweep")
}
