package logread_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/cri/logread"
)

// impatient is a context that is canceled after three calls of Err.
type impatient struct {
	context.Context
	asked atomic.Int32
}

func (c *impatient) Err() error {
	if c.asked.Add(1) > 3 {
		return context.Canceled
	}
	return nil
}

func TestATailEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	line := []byte("2026-01-02T03:04:05Z stdout F x\n")
	require.NoError(t, os.WriteFile(path, bytes.Repeat(line, 100_000), 0o600))
	reader, err := logread.New(logread.Config{})
	require.NoError(t, err)
	ctx := &impatient{Context: t.Context()}
	err = reader.Read(ctx, logread.Request{Path: path, Tail: new(int64(1)), Stream: logread.Stderr}, new(bytes.Buffer))
	assert.ErrorIs(t, err, context.Canceled)
	assert.Less(t, ctx.asked.Load(), int32(8), "reading stopped")
}
