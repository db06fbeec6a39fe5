package runtimetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/pause"
	"github.com/kubeparts/kubeparts/runtime"
)

// A waiting runtime is a runtime that queues starts, whose SyncPod waits until the
// queued starts of the pod were carried out, as SyncPod of other runtimes does.
type waiting struct {
	runtime.Runtime
	timing Timing
}

// Unwrap implements compose.Wrapper.
func (w waiting) Unwrap() any { return w.Runtime }

// SyncPod waits until no container of the pod is in the state created. It returns
// ctx's error if ctx is done first.
func (w waiting) SyncPod(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	res, err := w.Runtime.SyncPod(ctx, req)
	if req.Pod == nil || req.Pod.UID == "" || ctx.Err() != nil {
		return res, err
	}
	for deadline := time.Now().Add(w.timing.Timeout); ; {
		name, failed := w.queued(ctx, req.Pod.UID)
		switch {
		case failed != nil:
			return res, failed
		case name == "":
			return res, err
		case time.Now().After(deadline):
			return res, fmt.Errorf("container %s is in the state created %v after SyncPod; set Timing.Timeout to the longest time in the queue", name, w.timing.Timeout)
		}
		if failed := pause.For(ctx, w.timing.PollInterval); failed != nil {
			return res, failed
		}
	}
}

// queued returns the name of a container of the pod whose start is queued, or "".
func (w waiting) queued(ctx context.Context, uid types.UID) (string, error) {
	s, err := w.Runtime.PodStatus(ctx, uid)
	if err != nil {
		return "", err
	}
	for _, c := range s.Containers {
		if c.State == runtime.ContainerCreated {
			return c.Name, nil
		}
	}
	return "", nil
}

// waiting returns new with waiting runtimes.
func (s Suite) waiting(new func(t *testing.T) runtime.Runtime) func(t *testing.T) runtime.Runtime {
	return func(t *testing.T) runtime.Runtime { return waiting{new(t), s.Timing} }
}

// unwrapped returns b for waiting runtimes: its functions get the wrapped ones.
func unwrapped(b Backend) Backend {
	out := b
	if b.Reopen != nil {
		out.Reopen = func(t *testing.T, rt runtime.Runtime) runtime.Runtime {
			w := rt.(waiting)
			return waiting{b.Reopen(t, w.Runtime), w.timing}
		}
	}
	if b.LoseSandbox != nil {
		out.LoseSandbox = func(t *testing.T, rt runtime.Runtime, uid types.UID) error {
			return b.LoseSandbox(t, rt.(waiting).Runtime, uid)
		}
	}
	if b.Calls != nil {
		out.Calls = func(rt runtime.Runtime) int { return b.Calls(rt.(waiting).Runtime) }
	}
	return out
}
