package podworker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/podworker"
)

type tracedKey struct{}

// A tracedHandler fails each first Sync, and records for each call what Hooks.Trace has put
// into its context.
type tracedHandler struct{ calls []any }

func (h *tracedHandler) Sync(ctx context.Context, req podworker.SyncRequest) (podworker.SyncResult, error) {
	h.calls = append(h.calls, ctx.Value(tracedKey{}))
	if req.First {
		return podworker.SyncResult{}, errors.New("busy")
	}
	return podworker.SyncResult{}, nil
}

func (h *tracedHandler) Terminate(ctx context.Context, _ podworker.SyncRequest) error {
	h.calls = append(h.calls, ctx.Value(tracedKey{}))
	return nil
}

func (h *tracedHandler) Cleanup(ctx context.Context, _ podworker.SyncRequest) error {
	h.calls = append(h.calls, ctx.Value(tracedKey{}))
	panic("boom")
}

func TestTraceWrapsEachCallOfTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h tracedHandler
		var ended []string
		w, err := podworker.New(podworker.Config{Handler: &h, StatusCache: observed{}, Hooks: podworker.Hooks{
			Trace: func(ctx context.Context, call podworker.SyncInfo) (context.Context, func(error)) {
				name := call.Pod.Name + " " + call.State.String()
				return context.WithValue(ctx, tracedKey{}, name), func(err error) {
					if err != nil {
						name += ": " + err.Error()
					}
					ended = append(ended, name)
				}
			},
		}})
		require.NoError(t, err)
		stop := run(t, w)
		w.Update(newPod("web", 0), true)
		time.Sleep(time.Minute)
		w.Kill("web", podworker.KillOptions{})
		time.Sleep(time.Second)
		stop()
		require.GreaterOrEqual(t, len(h.calls), 4)
		assert.Equal(t, []any{"web syncing", "web syncing", "web terminating", "web cleaning"}, h.calls[:4])
		assert.Equal(t, []string{"web syncing: busy", "web syncing", "web terminating", "web cleaning: podworker: the handler panicked: boom"}, ended[:4])
	})
}
