package runtimetest

import (
	"slices"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// maxSnapshots is the maximum number of snapshots; beyond it, half of them are
// deleted.
const maxSnapshots = 1024

// A snapshot is the list of pods from a time on.
type snapshot struct {
	at   time.Time
	pods []*runtime.Pod
}

// snapshotLocked records the list of pods.
func (r *Runtime) snapshotLocked() {
	now := snapshot{time.Now(), r.listLocked()}
	if n := len(r.snapshots); n > 0 && r.snapshots[n-1].at.Equal(now.at) {
		r.snapshots[n-1] = now
		return
	}
	if len(r.snapshots) == maxSnapshots {
		r.snapshots = slices.Delete(r.snapshots, 0, maxSnapshots/2)
	}
	r.snapshots = append(r.snapshots, now)
}

// agedLocked returns the list as of that long ago, or the oldest snapshot.
func (r *Runtime) agedLocked(age time.Duration) []*runtime.Pod {
	then := time.Now().Add(-age)
	for i, p := range slices.Backward(r.snapshots) {
		if i > 0 && p.at.After(then) {
			continue
		}
		out := make([]*runtime.Pod, len(p.pods))
		for i, pod := range p.pods {
			out[i] = new(*pod) // the caller owns the result
			out[i].Sandboxes = slices.Clone(pod.Sandboxes)
			out[i].Containers = slices.Clone(pod.Containers)
		}
		return out
	}
	return r.listLocked()
}
