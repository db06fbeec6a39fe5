package notify_test

import (
	"bufio"
	"context"
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

// eat makes this test binary a program that takes so many MiB when it is told to,
// and says so.
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

// The kernel tells of a level that is passed, faster than anybody looks. What is
// measured is held against the word of the program itself that it has the memory,
// which comes through a pipe in the same run.
func TestIntegrationTheKernelTellsOfMemoryAtOnce(t *testing.T) { // F-18, ev-58, ev-59
	lab.Need(t, "linux", "root")
	if _, err := os.Stat("/sys/fs/cgroup/memory/cgroup.event_control"); err != nil {
		t.Skip("this machine has no cgroup v1 with memory:", err) // cgroup v2 is polled: see the unit tests
	}
	dir := filepath.Join("/sys/fs/cgroup/memory", fmt.Sprintf("kubeparts-notify-%d", os.Getpid()))
	require.NoError(t, os.Mkdir(dir, 0o755))
	t.Cleanup(func() {
		for range 100 {
			if os.Remove(dir) == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Errorf("%s is left", dir)
	})
	self, err := os.Executable()
	require.NoError(t, err)
	hog := exec.CommandContext(t.Context(), self)
	hog.Env = append(os.Environ(), eat+"=1")
	stdin, err := hog.StdinPipe()
	require.NoError(t, err)
	stdout, err := hog.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, hog.Start())
	defer func() { _ = hog.Process.Kill(); _ = hog.Wait() }()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, hog.Process.Pid), 0o600))

	// Nobody looks within this test: what is told of is told by the kernel.
	var log strings.Builder
	n, err := notify.New(notify.Config{Dir: dir, Poll: time.Hour, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	require.NoError(t, n.Update([]int64{80 << 20, 180 << 20}))
	ctx, stop := context.WithCancel(t.Context())
	told, ended := make(chan time.Time, 10), make(chan error, 1)
	go func() { ended <- n.Run(ctx, func() { told <- time.Now() }) }()
	lines := bufio.NewScanner(stdout)
	takeMore := func(why string) {
		time.Sleep(300 * time.Millisecond) // the levels are registered by then
		_, err := io.WriteString(stdin, "more\n")
		require.NoError(t, err)
		began := time.Now()
		require.True(t, lines.Scan())
		had := time.Now()
		select {
		case at := <-told:
			t.Logf("%s: told %v after it was asked for, %v after all of it was there, which took %v",
				why, at.Sub(began), at.Sub(had), had.Sub(began))
			assert.Less(t, at.Sub(had), 500*time.Millisecond)
		case <-time.After(30 * time.Second):
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
