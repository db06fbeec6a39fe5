package main

import (
	"os"
	"os/exec"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/process"
)

func TestREADMEShowsThisProgram(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	unix := func(b []byte) string { return strings.ReplaceAll(string(b), "\r\n", "\n") }
	require.Contains(t, unix(readme), "```go\n"+unix(program)+"```")
}

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
