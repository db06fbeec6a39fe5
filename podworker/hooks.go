package podworker

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
)

// Hooks observe [Workers] and a [Loop]; the same value may be passed to both. They are called synchronously
// on the goroutine on which the event occurs and must neither block nor call the Loop. Each may be nil.
type Hooks struct {
	// Synced is called by Workers after each call of the Handler.
	Synced func(SyncInfo)

	// Preempted is called by Workers for each pod that is killed to admit another, by, whose
	// rejection has the reason, such as "OutOfcpu" (kubelet_preemptions).
	Preempted func(pod *v1.Pod, by types.UID, reason string)

	// Orphan is called by the Loop for each orphaned pod that is terminated
	// (kubelet_orphaned_runtime_pods_total).
	Orphan func(*runtime.Pod)

	// Restarted is called by the Loop for each pod that starts again because a source
	// added it while it was terminating (kubelet_restarted_pods_total).
	Restarted func(*v1.Pod)

	// Trace is called by Workers before each call of the Handler, which gets the returned
	// context. end is called with the error of the call. Durations and Err are zero.
	Trace func(ctx context.Context, call SyncInfo) (traced context.Context, end func(err error))
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add(&h.Synced, o.Synced)
		compose.Add3(&h.Preempted, o.Preempted)
		compose.Add(&h.Orphan, o.Orphan)
		compose.Add(&h.Restarted, o.Restarted)
		compose.AddTrace2(&h.Trace, o.Trace)
	}
	return h
}

// A SyncInfo describes one call of the Handler.
type SyncInfo struct {
	UID types.UID

	// Pod is nil for an orphan. It must not be changed.
	Pod *v1.Pod

	// State determines the method: Syncing, Terminating or Cleaning.
	State State

	// Queued is how long the pod was due before the call began, and Observed how long
	// the call then waited for a new status.
	Queued   time.Duration
	Observed time.Duration

	// Duration of the call without Observed (kubelet_pod_worker_duration_seconds).
	Duration time.Duration

	// SinceAdded is how long before the call the worker was created; if First is set,
	// it is the start latency (kubelet_pod_worker_start_duration_seconds).
	SinceAdded time.Duration

	// First is set for the first call for this pod.
	First bool

	// Err is the error of the call.
	Err error
}
