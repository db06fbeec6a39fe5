package logs_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/klog/v2"

	"github.com/kubeparts/kubeparts/logs"
)

func TestRepeatedMessagesAreForDebuggingWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		var waiting atomic.Bool
		waiting.Store(true)
		log := slog.New(logs.Repeats(slog.NewTextHandler(&out, nil), waiting.Load))
		lines := func() int {
			n := strings.Count(out.String(), "\n")
			out.Reset()
			return n
		}
		for i := range 10 {
			log.With("pod", i).Warn("Failed to read services", "err", "refused")
			log.WithGroup("g").Error("Failed to register node", "err", i)
		}
		assert.Equal(t, 2, lines(), "one for each message")
		log.Info("Started")
		log.Info("Started")
		assert.Equal(t, 2, lines(), "only warnings and errors")
		time.Sleep(6 * time.Minute)
		log.Warn("Failed to read services")
		log.Warn("Failed to read services")
		assert.Equal(t, 1, lines(), "a reminder")
		waiting.Store(false)
		log.Warn("Failed to read services")
		log.Warn("Failed to read services")
		assert.Equal(t, 2, lines())

		waiting.Store(true)
		log = slog.New(logs.Repeats(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}), waiting.Load))
		log.Warn("Failed")
		log.Warn("Failed")
		assert.Equal(t, 1, strings.Count(out.String(), "level=DEBUG"))
	})
}

func TestTheMessagesOfClientsAreForDebugging(t *testing.T) {
	var out bytes.Buffer
	logged := func(level slog.Level) string {
		out.Reset()
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level}))
		klog.FromContext(logs.Context(t.Context(), log)).WithName("n").WithValues("k", "v").Error(errors.New("boom"), "call failed")
		logs.Klog(log).Info("loaded")
		return out.String()
	}
	assert.Empty(t, logged(slog.LevelInfo))
	assert.Equal(t, 2, strings.Count(logged(slog.LevelDebug), "level=DEBUG"))
}
