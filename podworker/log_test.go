package podworker_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podworker"
)

// A failing is a Handler whose Sync returns err.
type failing struct {
	recorder
	err atomic.Value // of error
}

func (f *failing) Sync(context.Context, podworker.SyncRequest) (podworker.SyncResult, error) {
	return podworker.SyncResult{}, f.err.Load().(error)
}

func TestAFailureThatRepeatsIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		h := &failing{}
		h.err.Store(errors.New("no such command"))
		w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		loop, stop := runLoop(t, podworker.LoopConfig{Workers: w})
		loop.AddPods([]*v1.Pod{newPod("web", 0)})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		assert.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		h.err.Store(errors.New("no such directory"))
		time.Sleep(10 * time.Minute)
		stop()
		assert.Equal(t, 1, strings.Count(log.String(), "no such command"), log.String())
		assert.Equal(t, 1, strings.Count(log.String(), "no such directory"), log.String())
	})
}
