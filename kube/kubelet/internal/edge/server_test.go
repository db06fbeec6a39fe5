package edge

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLogLevel(t *testing.T) {
	for verbosity, want := range map[int]slog.Level{
		-1: slog.LevelWarn, 0: slog.LevelWarn, 1: slog.LevelWarn, 2: slog.LevelInfo, 3: slog.LevelInfo, 4: slog.LevelDebug, 10: slog.LevelDebug,
	} {
		assert.Equal(t, want, LogLevel(verbosity), verbosity)
	}
}
