package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const patience = 90 * time.Second

func newLockFile(path string, stop func()) lockFile {
	return lockFile{path: path, exitOnContention: stop != nil, stop: stop, logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

func TestALockFileIsTakenWhenItIsReleased(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var stopped atomic.Int32
	release, err := takeLockFile(t.Context(), newLockFile(path, func() { stopped.Add(1) }))
	require.NoError(t, err)
	second := make(chan error, 1)
	go func() {
		release, err := takeLockFile(t.Context(), newLockFile(path, nil))
		if err == nil {
			release()
		}
		second <- err
	}()
	require.Eventually(t, func() bool { return stopped.Load() == 1 }, patience, time.Millisecond, "the first is to stop")
	select {
	case err := <-second:
		t.Fatalf("the second did not wait: %v", err)
	case <-time.After(3 * lockPeriod):
	}
	release()
	require.NoError(t, <-second)
	assert.EqualValues(t, 1, stopped.Load())
}

func TestWaitingForALockFileEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	release, err := takeLockFile(t.Context(), newLockFile(path, nil))
	require.NoError(t, err)
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 2*lockPeriod)
	defer cancel()
	_, err = takeLockFile(ctx, newLockFile(path, nil))
	require.ErrorIs(t, err, context.DeadlineExceeded)

	_, err = takeLockFile(t.Context(), newLockFile(filepath.Join(path, "below"), nil))
	require.ErrorAs(t, err, new(*os.PathError))
}
