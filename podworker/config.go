package podworker

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A StatusCache returns the status of pods as the runtime reported it. pleg.Generator
// implements it. Its methods are called concurrently.
type StatusCache interface {
	// Get returns the last observed status of the pod without waiting. It returns an
	// error for a pod that was never observed.
	Get(uid types.UID) (*runtime.PodStatus, error)

	// GetNewerThan blocks until the pod has been observed after t, or ctx is done. The
	// result is shared.
	GetNewerThan(ctx context.Context, uid types.UID, t time.Time) (*runtime.PodStatus, error)

	// Pods returns the pods of the runtime as last listed; none before the first list. A Loop
	// finds orphans in it, and a static pod waits for a listed one of the same name to
	// terminate. It must not block. The result is shared.
	Pods() []*runtime.Pod

	// Healthy returns an error if the runtime has not been listed, or not lately. It must not
	// block.
	Healthy() error
}

// Config configures [Workers].
type Config struct {
	// Handler implements the calls. Required.
	Handler Handler

	// StatusCache provides SyncRequest.Status and the pods of the runtime. Required.
	StatusCache StatusCache

	// Table is the table of the node's pods, for subsystems that read it or notify the Loop.
	// It must not be used by other Workers. If nil, New constructs one: [Workers.Table].
	Table *Table

	// Resync is the delay until the next Sync after a success, if nothing changes, plus
	// up to half as much jitter. Zero: 1 minute.
	Resync time.Duration

	// Retry is the delay after an error, plus up to half as much jitter. Zero: 10
	// seconds. Short values let one failing pod load the runtime. After
	// runtime.ErrUnavailable the first delays are 1, 2, 4 … s, up to Retry.
	Retry time.Duration

	// OrphanGrace is the grace period of orphaned pods in seconds. Nil: that of the
	// pod, as the runtime recorded it. The kubelet uses 1.
	OrphanGrace *int64

	// Parallel is the maximum number of calls in progress that are not slow. Pods take
	// turns in the order in which they became due. Zero: no limit, as in the kubelet.
	Parallel int

	// Slow is how long a call counts towards Parallel. A longer one (an image pull, a
	// grace period, a runtime that does not respond) no longer counts, so that it delays
	// its own pod only. Zero: 10 seconds; negative: calls count until they return, and
	// Parallel calls that hang block every pod.
	//
	// Parallel therefore does not bound the number of calls that hang: there may be one,
	// with a goroutine, for each pod. If n pods hang, those that became due after them
	// wait n/Parallel × Slow, once.
	Slow time.Duration

	// Jitter returns the delay to use for d until the next call for a pod. It must not block. Nil:
	// [NewJitter], a random value in d … 1.5 d.
	Jitter func(uid types.UID, d time.Duration) time.Duration

	// Record is called with Kubernetes events. It must not block. Nil: events are
	// discarded.
	Record func(runtime.Event)

	// Logger is used for failed calls. If nil, logs are discarded.
	Logger *slog.Logger

	// Hooks are called for observation: Synced and Preempted.
	Hooks Hooks
}
