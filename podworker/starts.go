package podworker

import (
	"context"
	"errors"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// remember keeps why containers of a pod did not start, and reports whether
// that differs from what was known (the reason cache of sl-61).
func (p *Pipeline) remember(uid types.UID, actions []runtime.Action) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.starts[uid]
	after := startErrors(before, actions)
	if maps.Equal(before, after) {
		return false
	}
	if len(after) == 0 {
		delete(p.starts, uid)
	} else {
		p.starts[uid] = after
	}
	return true
}

// startErrors returns known with the outcome of the starts among actions: a
// success takes the container out, a failure puts its reason in. A start that
// was called off says nothing about the container. known is not changed.
func startErrors(known map[string]runtime.Waiting, actions []runtime.Action) map[string]runtime.Waiting {
	after := maps.Clone(known)
	for _, a := range actions {
		if a.Kind != runtime.StartContainer && a.Kind != runtime.InitContainer {
			continue
		}
		switch {
		case a.Err == nil:
			delete(after, a.Target)
		case !errors.Is(a.Err, context.Canceled):
			if after == nil {
				after = map[string]runtime.Waiting{}
			}
			after[a.Target] = runtime.Waiting{Reason: a.Reason, Message: a.Message}
		}
	}
	return after
}
