package pipeline

import (
	"context"
	"errors"
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// storeStartErrors stores why containers of a pod did not start, and reports whether there is a
// new reason. It corresponds to the kubelet's reason cache.
//
// shown contains the reasons for a report with a status that was observed before the actions: also
// those of containers that were started now, because that status would show their exit before it.
func (p *Pipeline) storeStartErrors(uid types.UID, actions []runtime.Action) (shown map[string]v1.ContainerStateWaiting, isNew bool) {
	p.mu.Lock()
	s := p.pods[uid]
	before, after := s.starts, startErrors(s.starts, actions)
	s.starts = after
	p.storeLocked(uid, s)
	p.mu.Unlock()
	shown = maps.Clone(before)
	for name, reason := range after {
		if before[name] == reason {
			continue
		}
		isNew = true
		if shown == nil {
			shown = map[string]v1.ContainerStateWaiting{}
		}
		shown[name] = reason
	}
	return shown, isNew
}

// startErrors returns a copy of before with the results of the starts in actions: a success
// removes the container, a failure sets its reason, and a canceled start changes nothing.
func startErrors(before map[string]v1.ContainerStateWaiting, actions []runtime.Action) map[string]v1.ContainerStateWaiting {
	after := maps.Clone(before)
	for _, a := range actions {
		if a.Kind != runtime.StartContainer && a.Kind != runtime.InitContainer {
			continue
		}
		switch {
		case a.Err == nil:
			delete(after, a.Target)
		case !errors.Is(a.Err, context.Canceled):
			if after == nil {
				after = map[string]v1.ContainerStateWaiting{}
			}
			after[a.Target] = v1.ContainerStateWaiting{Reason: a.Reason, Message: a.Message}
		}
	}
	return after
}
