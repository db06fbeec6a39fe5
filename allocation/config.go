package allocation

import (
	"context"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// An Operation is what a pod asks to be let do.
type Operation string

// The operations (al-9, adm-2).
const (
	Add    Operation = "add"    // to run here
	Resize Operation = "resize" // to have other resources than it was granted
)

// A Request asks whether a pod fits.
type Request struct {
	Operation Operation

	// Pod asks: with the resources it wants, or, when it was let in by an
	// earlier agent, with those it was granted (al-3).
	Pod *v1.Pod

	// Others are all pods that have been granted something, with that in
	// place of what they ask for (al-9), in no order. Of one that nobody has
	// brought since the agent started there is only what its record tells:
	// names and resources. All are shared: don't change them.
	Others []*v1.Pod
}

// A Trigger is why pending resizes are looked at again (al-7).
type Trigger string

// The triggers.
const (
	PodsAdded     Trigger = "pods_added"
	PodUpdated    Trigger = "pod_updated"
	PodsRemoved   Trigger = "pods_removed"
	PodTerminated Trigger = "pod_terminated"
	PodResized    Trigger = "pod_resized"
	PeriodicRetry Trigger = "periodic_retry"
)

// Config configures a [Manager]. The zero value lets everything in, grants
// every resize, and remembers nothing beyond the process.
type Config struct {
	// Dir holds the records, a file per pod; it is made if need be, and no one
	// else may write there. Empty: no records, and an agent that is restarted
	// takes what specs ask for as granted, admitted or not.
	Dir string

	// Admit returns nil if the pod may have the requested resources. Calls do
	// not overlap, so that no two pods are allocated the same resources; it
	// should be quick and must not call the Manager.
	//
	// Manager.Admit returns the rejection of a pod as it is. The rejected resize
	// of a pod is Deferred and tried again later; with the reason
	// v1.PodReasonInfeasible it is tried again only when the pod requests other
	// resources.
	//
	// If nil, every request fits.
	Admit func(ctx context.Context, req Request) *runtime.Rejection

	// Node says what cannot be done here at all.
	Node NodeFacts

	// Ready reports whether all sources have told which pods they want; no
	// resize is decided before (al-8). Nil: they have.
	Ready func() bool

	// AllInit: init containers that run to their end can be resized too, as
	// sidecars can (al-2).
	AllInit bool

	// Period is how often Run tries pending resizes again. Zero: 3 minutes.
	// EarlyPeriod is how often until Ready. Zero: 30 seconds (al-7).
	Period, EarlyPeriod time.Duration

	// Changed is told that a pod was granted something else, or that the
	// conditions of its resize are others, for a reason that is not its own:
	// it should be synced (podworker.Inbox.PodChanged). It must not
	// block, nor call the Manager. Nil: the next sync finds out.
	Changed func(uid types.UID)

	// Record takes the events that kubectl describe shows (al-13). It must not
	// block. Nil: nobody reads them.
	Record func(runtime.Event)

	// Logger gets records that cannot be read or written. Nil discards.
	Logger *slog.Logger

	// Hooks observe; see there.
	Hooks Hooks
}

// Hooks are called as things happen, on the goroutine they happen on; they must
// not block, nor call the Manager. Any may be nil.
type Hooks struct {
	// Decided is called for each resize that was decided.
	Decided func(DecisionInfo)

	// Resized is called when a pod has what it was granted.
	Resized func(ResizedInfo)
}

// A DecisionInfo tells of one decision on one resize.
type DecisionInfo struct {
	UID     types.UID
	Trigger Trigger

	// Before and After: how it stood. NotPending after means granted.
	Before, After Pending

	// Message of the refusal, if it was one.
	Message string

	// Waited since it was first refused; zero if it was not.
	Waited time.Duration
}

// A ResizedInfo tells of a resize that has come through.
type ResizedInfo struct {
	UID types.UID

	// Duration since it was granted; zero if an earlier agent did that.
	Duration time.Duration
}
