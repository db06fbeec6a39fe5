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

// eat makes this test binary a program that allocates so many MiB on command, and
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

// A consumer is a process of this binary that runs that program.
type consumer struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

func newConsumer(t *testing.T) *consumer {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	h := &consumer{t: t, cmd: exec.CommandContext(t.Context(), self)}
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

// end kills it, so that its cgroup can be removed.
func (h *consumer) end() {
	if h.cmd.ProcessState == nil {
		_ = h.cmd.Process.Kill()
		_ = h.cmd.Wait()
	}
}

func (h *consumer) into(group string) {
	h.t.Helper()
	require.NoError(h.t, os.WriteFile(filepath.Join(group, "cgroup.procs"), fmt.Append(nil, h.cmd.Process.Pid), 0o600))
}

// more makes it allocate more; has waits until it has done so.
func (h *consumer) more() {
	h.t.Helper()
	_, err := io.WriteString(h.stdin, "more\n")
	require.NoError(h.t, err)
}

func (h *consumer) has() {
	h.t.Helper()
	require.True(h.t, h.lines.Scan())
}

// newGroup creates a cgroup below an existing one, and removes it when the test ends.
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

// The kernel reports a level that is passed, faster than polling. The latency is
// measured from the program's own report of the allocation, which arrives through a
// pipe in the same run.
func TestIntegrationTheKernelReportsMemoryAtOnce(t *testing.T) { // ev-58, ev-59
	lab.Need(t, "linux", "root")
	if _, err := os.Stat("/sys/fs/cgroup/memory/cgroup.event_control"); err != nil {
		t.Skip("this machine has no cgroup v1 with memory:", err) // the tests of v2 run in an emulated one
	}
	dir := newGroup(t, "/sys/fs/cgroup/memory")
	consumer := newConsumer(t)
	consumer.into(dir)

	// There is no polling during this test: every notification is the kernel's.
	var log strings.Builder
	n, err := notify.New(notify.Config{Dir: dir, Poll: time.Hour, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	require.NoError(t, n.Update([]int64{80 << 20, 180 << 20}))
	ctx, stop := context.WithCancel(t.Context())
	reported, ended := make(chan time.Time, 10), make(chan error, 1)
	go func() { ended <- n.Run(ctx, func() { reported <- time.Now() }) }()
	takeMore := func(why string) {
		time.Sleep(300 * time.Millisecond) // the levels are registered by then
		began := time.Now()
		consumer.more()
		consumer.has()
		had := time.Now()
		select {
		case at := <-reported:
			t.Logf("%s: notified %v after the request, %v after the allocation, which took %v",
				why, at.Sub(began), at.Sub(had), had.Sub(began))
		case <-time.After(90 * time.Second):
			t.Fatal(why + ": no notification; " + log.String())
		}
	}
	takeMore("the first level")
	takeMore("the second level")
	require.NoError(t, n.Update([]int64{280 << 20}))
	takeMore("a new level")
	assert.Empty(t, reported)
	stop()
	assert.NoError(t, <-ended)
	assert.Empty(t, log.String())
}
