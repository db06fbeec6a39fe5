//go:build unix

package logread_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/cri/logread"
)

func TestALogThatIsAPipeIsNotWaitedFor(t *testing.T) {
	l := newLog(t)
	require.NoError(t, syscall.Mkfifo(l.path, 0o600))
	_, err := l.read(logread.Config{}, logread.Request{})
	assert.ErrorContains(t, err, "not a regular file")
}
