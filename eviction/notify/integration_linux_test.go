package notify_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/eviction/notify"
	"github.com/kubeparts/kubeparts/internal/lab"
)

// eat makes this test binary a program that allocates this many MiB on request and
// reports it.
const eat = "KUBEPARTS_NOTIFY_EAT"

func TestMain(m *testing.M) {
	if os.Getenv(eat) == "" {
		os.Exit(m.Run())
	}
	in := bufio.NewScanner(os.Stdin)
	var held [][]byte
	for in.Scan() {
		b := make([]byte, 100<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		held = append(held, b)
		fmt.Println(len(held))
	}
	os.Exit(0)
}

// A hog is this binary as that program.
type hog struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

func newHog(t *testing.T) *hog {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	h := &hog{t: t, cmd: exec.CommandContext(t.Context(), self)}
	h.cmd.Env = append(os.Environ(), eat+"=1")
	h.stdin, err = h.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := h.cmd.StdoutPipe()
	require.NoError(t, err)
	h.lines = bufio.NewScanner(stdout)
	require.NoError(t, h.cmd.Start())
	t.Cleanup(h.end)
	return h
}

// end kills it, which is needed before its group can go.
func (h *hog) end() {
	if h.cmd.ProcessState == nil {
		_ = h.cmd.Process.Kill()
		_ = h.cmd.Wait()
	}
}

func (h *hog) into(group string) {
	h.t.Helper()
	require.NoError(h.t, os.WriteFile(filepath.Join(group, "cgroup.procs"), fmt.Append(nil, h.cmd.Process.Pid), 0o600))
}

// more has it take more; has waits until it has that.
func (h *hog) more() {
	h.t.Helper()
	_, err := io.WriteString(h.stdin, "more\n")
	require.NoError(h.t, err)
}

func (h *hog) has() {
	h.t.Helper()
	require.True(h.t, h.lines.Scan())
}

// newGroup makes a cgroup in one that there is, and removes it in the end.
func newGroup(t *testing.T, in string) string {
	t.Helper()
	dir := filepath.Join(in, fmt.Sprintf("kubeparts-notify-%d", os.Getpid()))
	require.NoError(t, os.Mkdir(dir, 0o755))
	t.Cleanup(func() {
		for range 200 {
			if err := os.Remove(dir); err == nil || errors.Is(err, os.ErrNotExist) {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Errorf("%s is left", dir)
	})
	return dir
}

// The kernel reports a level that is exceeded faster than polling could. The delay is
// measured from the report of the program, through a pipe in the same run, that it has
// the memory.
func TestIntegrationTheKernelTellsOfMemoryAtOnce(t *testing.T) { // ev-58, ev-59
	lab.Need(t, "linux", "root")
	if _, err := os.Stat("/sys/fs/cgroup/memory/cgroup.event_control"); err != nil {
		t.Skip("this machine has no cgroup v1 with memory:", err) // the tests of v2 run in an emulated one
	}
	dir := newGroup(t, "/sys/fs/cgroup/memory")
	hog := newHog(t)
	hog.into(dir)

	// Polling is disabled in this test: all notifications are the kernel's.
	var log strings.Builder
	n, err := notify.New(notify.Config{Dir: dir, Poll: time.Hour, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	require.NoError(t, n.Update([]int64{80 << 20, 180 << 20}))
	ctx, stop := context.WithCancel(t.Context())
	told, ended := make(chan time.Time, 10), make(chan error, 1)
	go func() { ended <- n.Run(ctx, func() { told <- time.Now() }) }()
	takeMore := func(why string) {
		time.Sleep(300 * time.Millisecond) // the levels are registered by then
		began := time.Now()
		hog.more()
		hog.has()
		had := time.Now()
		select {
		case at := <-told:
			t.Logf("%s: told %v after it was asked for, %v after all of it was there, which took %v",
				why, at.Sub(began), at.Sub(had), had.Sub(began))
		case <-time.After(90 * time.Second):
			t.Fatal(why + ": nobody told of it; " + log.String())
		}
	}
	takeMore("the first level")
	takeMore("the second level")
	require.NoError(t, n.Update([]int64{280 << 20}))
	takeMore("a new level")
	assert.Empty(t, told)
	stop()
	assert.NoError(t, <-ended)
	assert.Empty(t, log.String())
}
