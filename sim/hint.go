package sim

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// A hinter passes the hints of a runtime on to an agent, each as a call of the
// outside: with its moment, and the faults of hints. Hints for a pod that come
// while one is on its way are that one, so that it does not matter in how many
// pieces the runtime told of what happened at one instant.
type hinter struct {
	agent   *Agent
	changed func(uid types.UID)
	wg      sync.WaitGroup

	mu     sync.Mutex // held while changed is called, which does not block
	coming map[types.UID]bool
}

func (h *hinter) hint(ctx context.Context, uid types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.coming[uid] {
		return
	}
	h.coming[uid] = true
	h.wg.Go(func() {
		err := h.agent.Call(ctx, Call{Method: hintsCall, UID: uid}, func() error {
			h.mu.Lock()
			defer h.mu.Unlock()
			delete(h.coming, uid) // what happens from now on is another hint
			return nil
		})
		h.mu.Lock()
		defer h.mu.Unlock()
		if err == nil {
			h.changed(uid)
		} else {
			delete(h.coming, uid)
		}
	})
}
