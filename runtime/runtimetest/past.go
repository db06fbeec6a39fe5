package runtimetest

import (
	"slices"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// pastMax is how many changes are remembered so that lists can be stale.
const pastMax = 1024

// A past is what a list showed from a time on.
type past struct {
	at   time.Time
	pods []*runtime.Pod
}

// rememberLocked notes what lists show from now on.
func (r *Runtime) rememberLocked() {
	now := past{time.Now(), r.listLocked()}
	if n := len(r.past); n > 0 && r.past[n-1].at.Equal(now.at) {
		r.past[n-1] = now
		return
	}
	if len(r.past) == pastMax {
		r.past = slices.Delete(r.past, 0, pastMax/2)
	}
	r.past = append(r.past, now)
}

// agedLocked lists what there was that long ago, or, if that is forgotten, the
// oldest that is not.
func (r *Runtime) agedLocked(age time.Duration) []*runtime.Pod {
	then := time.Now().Add(-age)
	for i, p := range slices.Backward(r.past) {
		if i > 0 && p.at.After(then) {
			continue
		}
		out := make([]*runtime.Pod, len(p.pods))
		for i, pod := range p.pods {
			out[i] = new(*pod) // the caller's own
			out[i].Sandboxes = slices.Clone(pod.Sandboxes)
			out[i].Containers = slices.Clone(pod.Containers)
		}
		return out
	}
	return r.listLocked()
}
