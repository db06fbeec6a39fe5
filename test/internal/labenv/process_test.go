package labenv_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

func TestUntilReturnsTheLastError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	fails := func() error { return errors.New("no") }
	assert.NoError(t, labenv.Until(ctx, "wait", time.Hour, func() error { return nil }))
	assert.ErrorContains(t, labenv.Until(ctx, "wait", 0, fails), "wait: context deadline exceeded: no")
	cancel()
	assert.ErrorIs(t, labenv.Until(ctx, "wait", time.Hour, fails), context.Canceled)
}

func TestUntilReturnsWhenTheProcessExits(t *testing.T) {
	p, err := labenv.Start("sh", []string{"-c", "echo the reason; exit 1"}, filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	err = p.Until(t.Context(), "wait", time.Hour, func() error { return errors.New("no") })
	assert.ErrorContains(t, err, "wait: the process has exited: the reason")
	assert.False(t, p.Running())
	assert.NoError(t, p.Stop(0))
}

func TestAProcessThatIgnoresTermIsKilled(t *testing.T) {
	p, err := labenv.Start("sh", []string{"-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"}, filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	require.NoError(t, p.Until(t.Context(), "start", time.Minute, func() error {
		if p.Tail(1) != "ready" {
			return errors.New("not ready")
		}
		return nil
	}))
	assert.ErrorContains(t, p.Stop(10*time.Millisecond), "does not exit within 10ms of SIGTERM")
	assert.False(t, p.Running())
}
