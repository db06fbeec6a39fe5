package labenv

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCPUTime(t *testing.T) {
	got, err := parseCPUTime("7 (a) b c) S 1 7 7 0 -1 4194560 1 0 0 0 123 45 0 0 20 0 9 0 100 1 2 3\n")
	require.NoError(t, err)
	assert.Equal(t, 1680*time.Millisecond, got)
	_, err = parseCPUTime("7 (a) S 1\n")
	assert.ErrorContains(t, err, "is not a line of /proc/PID/stat")
	_, err = parseCPUTime("7 (a) S 1 7 7 0 -1 4194560 1 0 0 0 x 45 0\n")
	assert.Error(t, err)
}

func TestAnonymousMemory(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err == nil {
		assert.Greater(t, AnonymousMemory(os.Getpid()), int64(1<<20))
	}
	assert.Zero(t, AnonymousMemory(-1))
}
