//go:build unix

package server_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Opening a pipe blocks until it has a writer: forever, here.
func TestAPipeAmongTheLogsDoesNotBlock(t *testing.T) {
	s, dir := logsOf(t, nil)
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	assert.Equal(t, 404, ask(s, "GET", "/logs/pipe", "").Code)
	assert.Equal(t, 404, ask(s, "GET", "/logs/?query=/pipe", "").Code)
	assert.Equal(t, 200, ask(s, "GET", "/logs/", "").Code)
}
