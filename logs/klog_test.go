package logs_test

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/klog/v2"

	"github.com/kubeparts/kubeparts/logs"
)

func TestWhatTheClientLogsIsForDebugging(t *testing.T) {
	var out bytes.Buffer
	say := func(level slog.Level) string {
		out.Reset()
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level}))
		klog.FromContext(logs.Context(t.Context(), log)).WithName("n").WithValues("k", "v").Error(errors.New("boom"), "call failed")
		return out.String()
	}
	assert.Empty(t, say(slog.LevelInfo))
	assert.Contains(t, say(slog.LevelDebug), "level=DEBUG")
	assert.Contains(t, say(slog.LevelDebug), "boom")
}
