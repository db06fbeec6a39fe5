package plan

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// Input is all that a plan is made from.
type Input struct {
	// Pod is what is wanted: defaulted, with UID, name and namespace set.
	// Without it there is nothing to plan, and the plan is empty.
	Pod *v1.Pod

	// Status is what the runtime was seen to hold of the pod, newest first as
	// [runtime.PodStatus] promises. Nil: nothing.
	Status *runtime.PodStatus

	// Backoff is the table of crash delays; Compute only reads it. Nil: a
	// container that crashed is started again at once.
	Backoff *Backoff

	// Now is when the plan is to be carried out; only back-off looks at it.
	Now time.Time
}

// A Plan is the next step towards the pod that is wanted, in the order in
// which it is to be carried out: stop the pod or the instances in Kill, create
// the sandbox, start what Start lists. The zero value has nothing to do.
//
// Pointers in it lead into the Input it was computed from.
type Plan struct {
	// KillPod says to stop every container and every sandbox of the pod,
	// whatever their state. Kill is then empty, and unless CreateSandbox is
	// set Start is empty too: the pod stays down.
	KillPod bool

	// KillReason is one of the Kill* reasons if KillPod is set.
	KillReason string

	// CreateSandbox says to create a sandbox with this Attempt.
	CreateSandbox bool
	Attempt       uint32

	// SandboxID is the sandbox that containers are started in; "" if it is
	// yet to be made or there is none.
	SandboxID string

	// Changed tells in words why the newest sandbox has to go; "" if it stays
	// or if there is none. With CreateSandbox it is the occasion for the event
	// SandboxChanged (rt-26).
	Changed string

	// Waits tells in words what the rest of the pod is waiting for; "" if
	// nothing is held back.
	Waits string

	// Kill lists the instances to stop before anything is started, in order.
	// If one of them cannot be stopped nothing must be started: its name may
	// be in Start.
	Kill []Kill

	// Start lists the containers to start, in order: ephemeral, init, regular,
	// each in the order of the spec.
	Start []Start
}

// A Kill is one instance that has to stop.
type Kill struct {
	Kind Kind
	ID   string // of the instance, as runtime.ContainerStatus.ID
	Name string

	// Container is its spec.
	Container *v1.Container

	// Reason is one of the Kill* reasons.
	Reason string

	// Message says it in the words of the event Killing (rt-47 … rt-49,
	// rt-62, rt-66).
	Message string
}

// Why a pod or an instance is stopped, as data.
const (
	KillSandboxChanged    = "SandboxChanged"    // the pod: its sandbox cannot be used any more (rt-39)
	KillCompleted         = "Completed"         // the pod: nothing runs that keeps it up, and nothing is to start (rt-50)
	KillInitFailed        = "InitFailed"        // the pod: an init container failed for good (rt-64, rt-66)
	KillDefinitionChanged = "DefinitionChanged" // made from another name or image than the spec has (rt-30)
	KillUnknownState      = "UnknownState"      // the runtime lost track of it (rt-47)
	KillDuplicate         = "Duplicate"         // another instance of the name runs and counts (lq-12)
	KillOldSandbox        = "OldSandbox"        // runs in a sandbox that is not the pod's any more
)

// A Start is one container to start: as a new instance, or by starting the
// one that Resume names.
type Start struct {
	Kind Kind
	Name string

	// Container is its spec; an ephemeral container is seen as a regular one.
	Container *v1.Container

	// Reason is one of the Start* reasons, Why the same in words.
	Reason string
	Why    string

	// RestartCount of the instance to create: one more than any instance had,
	// over all sandboxes (rt-75).
	RestartCount int32

	// NoStatus: the runtime holds no instance of it. RestartCount is 0 then,
	// and the log directory may know better (rt-75).
	NoStatus bool

	// Last is the newest instance that has exited, in any sandbox; nil if
	// there is none.
	Last *runtime.ContainerStatus

	// NotBefore is set while the container is in back-off: the start is not
	// to be tried before (rt-94). Zero: it is due.
	NotBefore time.Time

	// Delay is the back-off that follows Last, whether or not it has passed.
	// Zero: there is none.
	Delay time.Duration

	// Resume is the ID of an instance that was created for this very start
	// and never started: start it instead of creating another (lq-13). ""
	// creates one. An instance to resume is never in back-off: it passed when
	// it was created.
	Resume string
}

// Why a container is started, as data.
const (
	StartNew               = "New"               // it has no instance yet
	StartNewSandbox        = "NewSandbox"        // its instances belong to former sandboxes
	StartExited            = "Exited"            // it exited and is to run again
	StartCreated           = "Created"           // an instance was created and never started
	StartUnknownState      = "UnknownState"      // the runtime lost track of the last instance
	StartDefinitionChanged = "DefinitionChanged" // the running instance is replaced
)

// Kind is the list of the pod spec that a container is in.
type Kind int

// The kinds. The zero value is Regular.
const (
	Regular Kind = iota
	Init
	Ephemeral
)

// String returns the kind as people say it: "init container".
func (k Kind) String() string {
	switch k {
	case Ephemeral:
		return "ephemeral container"
	case Init:
		return "init container"
	default:
		return "container"
	}
}

// Empty reports whether the plan lists nothing at all. A plan whose starts are
// all in back-off is not empty: somebody has to say so, and to come back at
// RetryAt.
func (p Plan) Empty() bool {
	return !p.KillPod && !p.CreateSandbox && len(p.Kill) == 0 && len(p.Start) == 0
}

// RetryAt returns the earliest time at which a start that is put off becomes
// due. Zero: none is put off.
func (p Plan) RetryAt() time.Time {
	var at time.Time
	for i := range p.Start {
		if t := p.Start[i].NotBefore; !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	return at
}

// PutOff reports whether the start is in back-off.
func (s Start) PutOff() bool { return !s.NotBefore.IsZero() }
