package podworker

import (
	"context"
	"errors"
	"reflect"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Handler implements the work of a pod worker. [Workers] call it for different pods
// concurrently. Calls for one UID never overlap and follow the order of the states: Sync
// any number of times, then Terminate until it succeeds, then Cleanup until it succeeds.
// Termination is irreversible.
//
// Every method must return when its context is done: a deletion cancels an image pull,
// and a shorter grace period cancels a Terminate in progress. pipeline.Pipeline implements it.
//
// A Handler may implement [Retainer], [Reconciler], [Updater] and [ProgressReporter].
type Handler interface {
	// Sync brings the pod closer to its spec. After an error it is called again with
	// a delay, otherwise when something about the pod changed.
	Sync(ctx context.Context, req SyncRequest) (SyncResult, error)

	// Terminate returns nil when every container of the pod has terminated.
	Terminate(ctx context.Context, req SyncRequest) error

	// Cleanup releases the pod's volumes, cgroups and other resources. The pod's
	// object may be deleted after it has succeeded.
	Cleanup(ctx context.Context, req SyncRequest) error
}

// A Reconciler is a [Handler] that compares the status in the object of a pod with the status that
// it computed. Without it, a status that another writer has changed is not corrected.
type Reconciler interface {
	// Reconcile is called with pods whose object has another status than before; see
	// [Loop.ReconcilePods]. It is called concurrently with the methods of Handler, and must not
	// block.
	Reconcile(pod *v1.Pod)
}

// An Updater is a [Handler] that applies the update of a pod to a Sync in progress. Without it, the
// next Sync applies the update.
type Updater interface {
	// Updated is called with each update of a pod that is not terminating, which may arrive
	// while Sync is in progress with an earlier one. It is called concurrently with the methods
	// of Handler, and must not block.
	Updated(pod *v1.Pod)
}

// A ProgressReporter is a [Handler] that reports the progress of its calls. Without it,
// [Workers.Snapshot] contains only the state of the pod.
type ProgressReporter interface {
	// Progress returns the progress of the call for the pod. It is called concurrently with the
	// methods of Handler, and must not block.
	Progress(uid types.UID) Progress
}

// checkHandler returns an error if a wrapper hides an optional interface of the Handler.
func checkHandler(h Handler) error {
	return compose.Check(h, reflect.TypeFor[Retainer](), reflect.TypeFor[Reconciler](), reflect.TypeFor[Updater](), reflect.TypeFor[ProgressReporter]())
}

// Progress describes a call of a [Handler] that has not returned.
type Progress struct {
	// Step is the current step, as a verb phrase: "mount volumes". Empty: not known.
	Step  string
	Since time.Time // when Step began

	// Err is why Step has not been completed: `secret "conf" not found`. Empty: nothing
	// has failed. RetryAt is when Step is retried; zero: not known.
	Err     string
	RetryAt time.Time
}

// A SyncRequest is the argument of the methods of a [Handler].
type SyncRequest struct {
	UID types.UID

	// Pod is the latest spec. The Handler must not change it. It is nil for an orphan:
	// a pod that only the runtime reports, which is only terminated.
	Pod *v1.Pod

	// Orphan is the orphan as the runtime listed it; nil for other pods.
	Orphan *runtime.Pod

	// Mirror is the mirror pod of a static pod, as the last update contained it; nil:
	// none is known. It is shared and must not be changed.
	Mirror *v1.Pod

	// Status was observed after the last call for this pod that may have changed the
	// runtime had returned (see SyncResult.Idle). It is shared and must not be
	// changed. Nil for an orphan.
	Status *runtime.PodStatus

	// First is set in the first call that this worker makes for the pod.
	First bool

	// GracePeriodSeconds is the remaining grace period; nil in Sync.
	GracePeriodSeconds *int64

	// Termination is the reason for the termination, if one was passed (KillOptions).
	Termination runtime.Termination
}

// A SyncResult is the result of [Handler].Sync.
type SyncResult struct {
	// Terminal: the pod has completed or must not run; Terminate follows.
	Terminal bool

	// Termination is the reason of a Terminal result that does not follow from the
	// containers: the pod was rejected, or exceeded its deadline.
	Termination runtime.Termination

	// Idle: the call neither changed nor tried to change the runtime, so the status
	// that it was given is still valid and the next call may be given the same one.
	// Otherwise the next call waits for a newer status. If Sync returns an error, Idle
	// is ignored unless RetryAt is set.
	Idle bool

	// NextSync is the latest time of the next Sync, such as a deadline. Zero: when
	// something changes, or at the next resync.
	NextSync time.Time

	// RetryAt is when a failed operation may succeed: the end of a back-off. Only valid
	// with an error. Zero: not known; the ordinary delay applies.
	RetryAt time.Time
}

// ErrNetworkNotReady is wrapped by the error of a Handler for a pod that waits for the
// network of the node. The pod is retried after 1 second instead of Config.Retry
// (rule sl-28).
var ErrNetworkNotReady = errors.New("network is not ready")
