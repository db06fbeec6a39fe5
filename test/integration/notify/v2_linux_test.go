package notify_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/eviction/notify"
	"github.com/kubeparts/kubeparts/internal/lab"
)

const v2 = "/sys/fs/cgroup"

// onV2 creates a cgroup of v2 with the memory controller.
func onV2(t *testing.T) string {
	t.Helper()
	lab.NeedHere(t, "linux", "root")
	has, err := os.ReadFile(filepath.Join(v2, "cgroup.controllers"))
	if err != nil || !strings.Contains(string(has), "memory") {
		t.Skip("this machine has no cgroup v2 with memory; TestIntegrationOnCgroupV2 boots one that does")
	}
	require.NoError(t, os.WriteFile(filepath.Join(v2, "cgroup.subtree_control"), []byte("+memory"), 0o600))
	return newGroup(t, v2)
}

// A listener is a running Notifier.
type listener struct {
	*notify.Notifier
	t        *testing.T
	reported atomic.Int64
	first    chan time.Time // of all notifications
	log      *strings.Builder
	end      func()
}

func listen(t *testing.T, cfg notify.Config) *listener {
	t.Helper()
	l := &listener{t: t, first: make(chan time.Time, 1000), log: new(strings.Builder)}
	cfg.Logger = slog.New(slog.NewTextHandler(l.log, nil))
	var err error
	l.Notifier, err = notify.New(cfg)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- l.Run(ctx, func() {
			l.reported.Add(1)
			select {
			case l.first <- time.Now():
			default:
			}
		})
	}()
	l.end = func() {
		stop()
		assert.NoError(t, <-ended)
	}
	time.Sleep(300 * time.Millisecond) // it listens by then
	return l
}

func (l *listener) await(what string) time.Time {
	l.t.Helper()
	select {
	case at := <-l.first:
		return at
	case <-time.After(90 * time.Second):
		l.t.Fatal(what + ": no notification")
		return time.Time{}
	}
}

// since waits until a figure of a file reaches a value, and returns the time.
func since(t *testing.T, file string, figure func(line string) (n int64, ok bool), least int64) time.Time {
	t.Helper()
	for began := time.Now(); time.Since(began) < 90*time.Second; time.Sleep(2 * time.Millisecond) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for lines := bufio.NewScanner(strings.NewReader(string(text))); lines.Scan(); {
			if n, ok := figure(lines.Text()); ok && n >= least {
				return time.Now()
			}
		}
	}
	t.Fatalf("%s never came to %d", file, least)
	return time.Time{}
}

// A level that is passed is detected by the next poll; there are four per second. The
// best of three counts: delays of an emulated machine are not under test.
func TestIntegrationALevelOfCgroupV2IsDetected(t *testing.T) {
	dir := onV2(t)
	consumer := newConsumer(t)
	consumer.into(dir)
	l := listen(t, notify.Config{Dir: dir})
	defer l.end()
	best := time.Hour
	for i, level := range []int64{80 << 20, 180 << 20, 280 << 20} {
		require.NoError(t, l.Update([]int64{level}))
		time.Sleep(300 * time.Millisecond)
		require.Zero(t, l.reported.Swap(0), "notified before the usage reached the level")
		consumer.more()
		consumer.has()
		had := time.Now()
		after := l.await(fmt.Sprint("level ", i)).Sub(had)
		l.reported.Store(0)
		t.Logf("level %d: notified %v after the allocation", i, after)
		best = min(best, after)
	}
	assert.Less(t, best, 5*time.Second)
}

// There is no polling in these: every notification is the kernel's.
func TestIntegrationTheKernelReportsALimitThatIsMet(t *testing.T) { // memory.events
	dir := onV2(t)
	// Without PSI in this group, which a kernel before 6.1 cannot do without.
	_ = os.WriteFile(filepath.Join(dir, "cgroup.pressure"), []byte("0"), 0o600)
	_, err := os.Stat(filepath.Join(dir, "memory.pressure"))
	t.Log("PSI in the group:", err == nil)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "memory.high"), []byte("60M"), 0o600))
	consumer := newConsumer(t)
	consumer.into(dir)
	l := listen(t, notify.Config{Dir: dir, Poll: time.Hour})
	defer l.end()
	require.Zero(t, l.reported.Load())
	consumer.more()
	met := since(t, filepath.Join(dir, "memory.events"), func(line string) (n int64, ok bool) {
		_, err := fmt.Sscanf(line, "high %d", &n)
		return n, err == nil
	}, 1)
	after := l.await("memory.high").Sub(met)
	t.Logf("notified %v after the limit was met", after)
	consumer.end()
}

func TestIntegrationTheKernelReportsTasksThatWaitForMemory(t *testing.T) { // PSI
	dir := onV2(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "memory.high"), []byte("60M"), 0o600))
	consumer := newConsumer(t)
	consumer.into(dir)
	waited := func(line string) (n int64, ok bool) {
		_, total, _ := strings.Cut(line, "total=")
		_, err := fmt.Sscan(total, &n)
		return n, err == nil && strings.HasPrefix(line, "some")
	}
	// The root has no memory.events; it is the whole machine whose tasks wait.
	const pressure = "/proc/pressure/memory"
	before := int64(0)
	since(t, pressure, func(line string) (n int64, ok bool) {
		n, ok = waited(line)
		if ok {
			before = n
		}
		return 1, ok
	}, 1)
	for range 3 { // a lost event is accidental
		l := listen(t, notify.Config{Dir: v2, Poll: time.Hour})
		consumer.more()
		met := since(t, pressure, waited, before+150_000)
		after := l.await("pressure").Sub(met)
		t.Logf("notified %v after tasks had waited for 150 ms", after)
		l.end()
		assert.Empty(t, l.log.String())
		consumer.end()
		consumer = newConsumer(t)
		consumer.into(dir)
		time.Sleep(1200 * time.Millisecond) // the window has ended
		text, err := os.ReadFile(pressure)
		require.NoError(t, err)
		before, _ = waited(strings.SplitN(string(text), "\n", 2)[0])
	}
	consumer.end()
}

// Files of a removed group always have an event pending: it must not cause repeated
// notifications.
func TestIntegrationARemovedCgroupIsNotReported(t *testing.T) {
	dir := onV2(t)
	l := listen(t, notify.Config{Dir: dir, Poll: time.Hour})
	require.NoError(t, os.Remove(dir))
	time.Sleep(500 * time.Millisecond)
	assert.LessOrEqual(t, l.reported.Load(), int64(2))
	l.end()
	assert.Contains(t, l.log.String(), "cgroup was removed")
}
