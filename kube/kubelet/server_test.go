package kubelet

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Headers of the URL of manifests may be credentials.
func TestConfigzHasNoCredentials(t *testing.T) {
	k := decode(t, "staticPodURLHeader: {Authorization: [Bearer secret]}\n")
	assert.Equal(t, map[string][]string{"Authorization": {"<masked>"}}, maskHeaders(k).StaticPodURLHeader)
	assert.Equal(t, []string{"Bearer secret"}, k.StaticPodURLHeader["Authorization"], "the original is not changed")
}

func TestLogLevel(t *testing.T) {
	for verbosity, want := range map[int]slog.Level{
		-1: slog.LevelWarn, 0: slog.LevelWarn, 1: slog.LevelWarn, 2: slog.LevelInfo, 3: slog.LevelInfo, 4: slog.LevelDebug, 10: slog.LevelDebug,
	} {
		assert.Equal(t, want, LogLevel(verbosity), verbosity)
	}
}
