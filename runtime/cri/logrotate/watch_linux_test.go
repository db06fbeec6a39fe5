package logrotate

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An idle log is watched once, not once per period.
func TestAnIdleLogStaysWatched(t *testing.T) {
	const period = 10 * time.Second
	r := &Rotator{cfg: Config{MaxSize: 10 << 20, Period: period}}
	w := newWatcher()
	require.True(t, w.works())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.run()
	}()
	defer func() {
		w.close()
		<-done
	}()
	path := filepath.Join(t.TempDir(), "0.log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(t, err)
	defer log.Close()

	tail := &tail{path: path}
	now := time.Now()
	check := func(want time.Duration) {
		t.Helper()
		full, err := r.check(tail, now, w)
		require.NoError(t, err)
		assert.False(t, full)
		assert.InDelta(t, want, tail.due.Sub(now), float64(time.Millisecond))
		now = tail.due
	}
	soon := 100 * time.Millisecond // 10 MiB at 100 MiB/s
	check(soon)
	assert.False(t, tail.listen || tail.watched, "nothing is known about its rate")
	check(soon)
	assert.True(t, tail.listen)
	for range 3 {
		check(period)
		assert.True(t, tail.watched)
	}
	_, err = log.WriteString("a line\n")
	require.NoError(t, err)
	assert.Equal(t, path, <-w.written)
	watches := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.paths)
	}
	assert.Zero(t, watches(), "one write is notified")

	// Before the notification has been handled.
	check(soon)
	assert.False(t, tail.watched)
	check(period)
	assert.True(t, tail.watched)
	assert.Equal(t, 1, watches())
}
