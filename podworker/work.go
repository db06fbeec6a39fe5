package podworker

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Handler does the work of one pod's life. Workers call it, from many
// goroutines; calls for one UID never overlap, and come in the order of the
// states: Sync any number of times, then Terminate until it succeeds, then
// Cleanup until it succeeds. Terminating is irreversible.
//
// Every method returns when its context ends: that is how a deletion gets
// through a slow image pull, and a shorter grace period through a running
// stop. [Pipeline] is the ready-made one.
type Handler interface {
	// Sync brings the pod one step towards its spec. After an error it is
	// called again with back-off, else when something changed.
	Sync(ctx context.Context, w SyncRequest) (SyncResult, error)

	// Terminate returns nil when every container of the pod has stopped.
	Terminate(ctx context.Context, w SyncRequest) error

	// Cleanup releases what the pod held: volumes, cgroups. After it the
	// pod's object may go.
	Cleanup(ctx context.Context, w SyncRequest) error
}

// A Forgetter is a Handler that keeps something per pod. Forget is called once
// for each life that is finished, or was never started, and whose pod no source
// wants any more, or wants anew: then before the next life begins. Without it,
// nothing is said.
type Forgetter interface {
	Forget(pod *v1.Pod)
}

// An Explainer is a Handler that can say what the call in flight for a pod is
// about: "volumes". Without it, [Workers.Explain] names the call only. Doing is
// called at any time, and must not block. An empty step: nothing to say.
type Explainer interface {
	Doing(uid types.UID) (step string, since time.Time)
}

// A Blocker is a Handler, or the Volumes of a [Pipeline], that reports why the current
// step for a pod has not been completed: `secret "conf" not found`. [Workers.Explain]
// includes it. Blocked is called at any time and must not block. cause is empty if nothing
// has failed; retryAt is when the operation is retried, zero if that is not known.
type Blocker interface {
	Blocked(uid types.UID) (cause string, retryAt time.Time)
}

// A Work is what a Handler is given to do.
type SyncRequest struct {
	UID types.UID

	// Pod is the latest spec; the Handler must not change it. It is nil for
	// an orphan: a pod found in the runtime that no source wants, which is
	// only ever terminated.
	Pod *v1.Pod

	// Orphan is what the runtime showed of such a pod, else nil.
	Orphan *runtime.Pod

	// Mirror is the API server's copy of a static pod, as last heard; nil: there
	// is none, or nobody said. It may be shared: don't change it.
	Mirror *v1.Pod

	// Status was observed after the last call for this pod that may have done
	// something had returned (see Next.Idle). It may be shared: don't change
	// it. Nil for an orphan.
	Status *runtime.PodStatus

	// First tells that no call for this pod was made before by this agent.
	First bool

	// GracePeriodSeconds the pod has left to stop; nil in Sync.
	GracePeriodSeconds *int64

	// Ending is why the pod is terminated, if somebody said (KillOptions).
	Ending runtime.Termination
}

// Next says how a pod goes on after a Sync.
type SyncResult struct {
	// Terminal: the pod has run to its end, or must not run on; Terminate
	// follows.
	Terminal bool

	// Ending is why, if it is Terminal for another reason than that its
	// containers have ended: it was refused, or is past its deadline.
	Ending runtime.Termination

	// Idle: the call did nothing to the pod in the runtime, nor tried to. What
	// was seen before it is as good as what would be seen after it, so that the
	// next call may be given the same status, and a pod at rest need not be
	// looked at for each of its resyncs (L-14). Else the next call waits for a
	// newer one (pw-36). Of a Sync with an error it counts only with Retry.
	Idle bool

	// At is when to Sync again at the latest, because of a deadline. Zero: when
	// something changes, or at the next resync.
	At time.Time

	// Retry is when what failed may succeed: the end of a back-off. It goes
	// with an error. Zero: not known, so the ordinary delay.
	Retry time.Time
}

// ErrNetworkNotReady is what a Handler returns (wrapped) for a pod that has to
// wait for the node's network; the pod is tried again after a second instead
// of ten (sl-28).
var ErrNetworkNotReady = errors.New("network is not ready")
