package podworker

import (
	"context"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Statuses tells what the runtime shows of a pod. pleg.Generator is one. Its
// methods are called from many goroutines.
type StatusCache interface {
	// Get returns what was last seen of the pod, without waiting. A pod that
	// was never looked for gives an error.
	Get(uid types.UID) (*runtime.PodStatus, error)

	// GetNewerThan waits until the pod has been observed after t, or ctx
	// ends. The result is shared.
	GetNewerThan(ctx context.Context, uid types.UID, t time.Time) (*runtime.PodStatus, error)
}

// Config configures [Workers].
type Config struct {
	// Handler does the work. Required.
	Handler Handler

	// Statuses are what the Handler's Work.Status comes from. Required.
	StatusCache StatusCache

	// Pods returns what the runtime holds, as last listed: pleg's records. A
	// Loop finds orphans in it, and a static pod waits for one of its name to
	// end. Nil: there are none.
	Pods func() []*runtime.Pod

	// Resync is how long a healthy pod is left alone, if nothing happens, up
	// to half as much more. Zero: 1 minute.
	Resync time.Duration

	// Retry is how long to wait after an error, up to half as much more. Zero:
	// 10 seconds. Short values turn one broken pod into load on the runtime. A
	// runtime that does not answer is asked again sooner at first, after 1, 2, 4 … s.
	Retry time.Duration

	// OrphanGrace is how many seconds a pod that nobody wants has to stop.
	// Nil: what it was created with, as the runtime recorded it (lq-33). The
	// kubelet gives 1.
	OrphanGrace *int64

	// Parallel is how many pods are worked on at once. Zero: no limit, as in
	// the kubelet. With a limit, pods take turns in the order they became due.
	Parallel int

	// Slow is how long a call counts towards Parallel. One that takes longer (a
	// pull, a stop with its grace, a runtime that does not answer) gives its
	// place away, so that it holds up no pod but its own. Zero: 10 seconds;
	// negative: calls count until they return, and Parallel that hang hold up
	// every pod.
	//
	// So Parallel bounds what is done at once, not what hangs: of that there is
	// a call, with a goroutine, for each such pod at most, as the kubelet has
	// for every pod. Where n pods hang, those that became due behind them wait
	// n/Parallel × Slow, once.
	Slow time.Duration

	// Jitter spreads a delay. Nil: a random d … 1.5 d.
	Jitter func(d time.Duration) time.Duration

	// Record takes the events that kubectl describe shows. Nil: nobody reads
	// them. It must not block.
	Record func(runtime.Event)

	// Logger, nil discards.
	Logger *slog.Logger

	// Hooks observe; see there.
	Hooks Hooks
}

// Hooks are called as things happen, on the goroutine they happen on; they must
// not block. Any may be nil.
type Hooks struct {
	// Worked is called after each call of the Handler.
	Worked func(SyncInfo)

	// Preempted is called for each pod that is killed so that another may run
	// (kubelet_preemptions, ev-62).
	Preempted func(PreemptInfo)
}

// A PreemptInfo describes a pod that is killed so that another may run.
type PreemptInfo struct {
	Pod    *v1.Pod
	By     types.UID // of the pod that may run then
	Reason string    // of that pod's rejection: "OutOfcpu"
}

// A WorkInfo tells of one call of the Handler.
type SyncInfo struct {
	UID types.UID

	// Pod is nil for an orphan. It may not be changed.
	Pod *v1.Pod

	// State in which it was made: Syncing, Terminating or Cleaning.
	State State

	// Queued is how long the pod was due before the call began, and Observed
	// how long of that was spent waiting for a fresh status.
	Queued   time.Duration
	Observed time.Duration

	// Duration of the call itself (kubelet_pod_worker_duration_seconds).
	Duration time.Duration

	// SinceSeen is how long ago the pod was first heard of: with First, how
	// long it took to start (kubelet_pod_worker_start_duration_seconds).
	SinceSeen time.Duration

	// First tells the first call made for this pod.
	First bool

	// Err is what the call returned; a *PanicError if it panicked.
	Err error
}
