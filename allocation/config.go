package allocation

import (
	"context"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Request is an admission request.
type Request struct {
	// Resize is true if an admitted pod requests other resources, false if a pod requests to
	// run on the node.
	Resize bool

	// Pod is the pod with the requested resources, or with the allocated ones if an earlier
	// agent admitted it.
	Pod *v1.Pod

	// Others are all other pods with an allocation, with the allocated resources in their
	// specs, in no order. A pod that no source has delivered since the agent started has
	// only the data of its checkpoint: names and resources. They must not be modified.
	Others []*v1.Pod
}

// The reasons for retrying pending resizes (rule al-7).
const (
	triggerPodsAdded     = "pods_added"
	triggerPodUpdated    = "pod_updated"
	triggerPodsRemoved   = "pods_removed"
	triggerPodTerminated = "pod_terminated"
	triggerPodResized    = "pod_resized"
	triggerPeriodicRetry = "periodic_retry"
)

// Config configures a [Manager]. The zero value admits every pod, allocates every resize and has
// no checkpoints.
type Config struct {
	// Dir is the directory of the checkpoints, a file per pod. It is created if necessary;
	// other programs must not write to it. If empty, there are no checkpoints, and after a
	// restart running pods are allocated the resources of their specs.
	Dir string

	// Admit returns nil if the pod may have the requested resources. Calls do
	// not overlap, so that no two pods are allocated the same resources; it
	// should be quick and must not call the Manager.
	//
	// Manager.Admit returns the rejection of a pod unchanged. A rejected resize is
	// Deferred and retried; with the reason v1.PodReasonInfeasible it is retried only
	// when the pod requests other resources.
	//
	// If nil, every request fits.
	Admit func(ctx context.Context, req Request) *runtime.Rejection

	// Refresh reads again what Admit decided by, such as the Node object, after Manager.Admit
	// got the rejection, and reports whether it has changed; Admit is then called once more.
	// Calls may take long and overlap each other and those of Admit. If nil, every rejection
	// is final.
	Refresh func(ctx context.Context, rejection *runtime.Rejection) bool

	// Node has the properties of the node that make resizes infeasible.
	Node NodeConstraints

	// Pods are the pods of the node, a podworker.Table. If nil, all sources have synced, and
	// the next sync of a pod applies a change.
	Pods Pods

	// AllInit permits resizes of all init containers, not only of sidecars.
	InitContainers bool

	// Period is the interval at which Run retries pending resizes; zero means 3 minutes.
	// EarlyPeriod is the interval until all sources have synced; zero means 30 seconds.
	Period, EarlyPeriod time.Duration

	// Record records an event. It must not block. If nil, events are dropped.
	Record func(runtime.Event)

	// Logger receives the errors of checkpoints. If nil, nothing is logged.
	Logger *slog.Logger

	// Hooks are called by the Manager.
	Hooks Hooks
}

// Pods are the pods of a node, as the [Manager] requires them. The methods must not block or call
// the Manager.
type Pods interface {
	// Synced reports whether all sources have synced; no resize is decided before that.
	Synced() bool

	// PodChanged is called when the allocation or the resize conditions of a pod have changed
	// for a reason other than a call for that pod. The pod should be synced.
	PodChanged(uid types.UID)
}

// Hooks are called as a [Manager] works; they must not block or call the Manager. Any may be nil.
type Hooks struct {
	// Decided is called after each decision about a resize.
	Decided func(DecisionInfo)

	// Undeferred is called when a resize is no longer deferred, unless it is now infeasible.
	Undeferred func(UndeferredInfo)

	// Resized is called when a resize has been applied.
	Resized func(ResizedInfo)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add(&h.Decided, o.Decided)
		compose.Add(&h.Undeferred, o.Undeferred)
		compose.Add(&h.Resized, o.Resized)
	}
	return h
}

// DecisionInfo describes a decision about a resize.
type DecisionInfo struct {
	UID types.UID

	// Trigger is the reason for the decision: "pods_added", "pod_updated", "pods_removed",
	// "pod_resized", "periodic_retry", or the argument of [Manager.Retry].
	Trigger string

	// Before and After are the ResizeState.PendingReason before and after the decision.
	// After is empty if the resize was allocated.
	Before, After string

	// Message of the rejection. Empty if the resize was allocated.
	Message string

	// Waited is the time since the first rejection. Zero if there was none.
	Waited time.Duration
}

// UndeferredInfo describes the end of a deferral.
type UndeferredInfo struct {
	Pod *v1.Pod

	// Resolution is "accepted" if the resize was allocated, "reverted" if the pod requests its
	// allocated resources again, and "terminated" if the pod was released.
	Resolution string

	// Duration since the first rejection. Zero if an earlier agent made it.
	Duration time.Duration
}

// ResizedInfo describes a resize that has been applied.
type ResizedInfo struct {
	UID types.UID

	// Duration since the allocation. Zero if an earlier agent made it.
	Duration time.Duration
}
