package main

import (
	"os"
	"os/exec"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/process"
)

// TestMain lets the test binary be the program, and the program's supervisors.
func TestMain(m *testing.M) {
	if code, ok := process.Supervise(); ok {
		os.Exit(code)
	}
	if os.Getenv("TINY_TEST_RUNS_MAIN") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestItGreetsAndEnds(t *testing.T) {
	if testing.Short() || goruntime.GOOS == "windows" {
		t.Skip("runs processes")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TINY_TEST_RUNS_MAIN=1", "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "tiny-node Succeeded ready=0/1 restarts=0")
}
