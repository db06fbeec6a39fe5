package sim

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// An eventRelay passes the events of a runtime to an agent, each as a call to the
// outside with its latency and faults. An event for a pod is dropped while an earlier
// one for the pod is pending, so that the number of events that a runtime emits at one
// instant does not matter.
type eventRelay struct {
	agent   *Agent
	changed func(uid types.UID)
	wg      sync.WaitGroup

	mu      sync.Mutex // held while changed is called, which does not block
	pending map[types.UID]bool
}

func (h *eventRelay) relay(ctx context.Context, uid types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pending[uid] {
		return
	}
	h.pending[uid] = true
	h.wg.Go(func() {
		err := h.agent.Call(ctx, Call{Method: eventsCall, UID: uid}, func() error {
			h.mu.Lock()
			defer h.mu.Unlock()
			delete(h.pending, uid) // a later change is another event
			return nil
		})
		h.mu.Lock()
		defer h.mu.Unlock()
		if err == nil {
			h.changed(uid)
		} else {
			delete(h.pending, uid)
		}
	})
}
