//go:build unix

package shutdown_test

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/shutdown"
)

// SIGWINCH is ignored while Watch does not listen yet. SIGURG is, too, but the Go runtime sends it
// to interrupt goroutines.
func TestASignalStartsAShutdown(t *testing.T) {
	trigger := shutdown.Signals{Signals: []os.Signal{syscall.SIGWINCH}, Done: func() {}}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	notices, done := make(chan shutdown.Notice, 1), make(chan error, 1)
	go func() { done <- trigger.Watch(ctx, 0, func(n shutdown.Notice) { notices <- n }) }()
	for range 20 {
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGURG))
		select {
		case <-notices:
			t.Fatal("a shutdown without its signal")
		case <-time.After(5 * time.Millisecond):
		}
	}
	var n shutdown.Notice
	for begun := time.Now(); n.Release == nil; { // it may not listen yet
		require.Less(t, time.Since(begun), 90*time.Second)
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGWINCH))
		select {
		case n = <-notices:
		case <-time.After(10 * time.Millisecond):
		}
	}
	assert.True(t, n.Stopping)
	assert.Zero(t, n.Deadline)
	stop()
	require.NoError(t, <-done)
}
