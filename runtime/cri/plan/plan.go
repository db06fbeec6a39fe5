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

	// Probes are the results of liveness and startup probes. Nil: nobody
	// probes, and a container that runs counts as live and started.
	Probes *runtime.ProbeResults

	// Backoff tells the crash delays; Compute only asks it. Nil: a container
	// that crashed is started again at once.
	Backoff Delays

	// Counts is the highest restart count that an instance of each container
	// is known to have had, by container name, from a record that outlives
	// the instances (L-53). A container that is missing has none on record.
	// With what the runtime holds, it makes restart counts grow only.
	Counts map[string]int32

	// First is, by container name, the restart count of the instance with which its
	// back-off begins: when that was made nothing was left of earlier instances but
	// their number, so that they count for no crashes. A container that is missing
	// begins with 0. Only back-off looks at it.
	First map[string]int32

	// Ended is, by container name, the newest exit that is on record because
	// its instance was removed for the pod to start over: what Removal.Ended
	// held. Back-off goes on from it where the runtime holds no exited
	// instance of the container that is newer. A container that is missing has
	// none on record. Only the RestartCount, the Hash, the times and the
	// ExitCode are looked at.
	Ended map[string]*runtime.ContainerStatus

	// Over is, by name of a regular container, the exit code with which it was
	// seen to exit for good. It counts where the runtime holds no instance any
	// more, because an operator has removed it: what is over is not begun anew
	// (rt-42, st-50). Nil: nothing is on record. A pod that may start over
	// ([v1.ContainerRestartRuleActionRestartAllContainers]) does not ask it.
	Over map[string]int32

	// Attempts is how many attempts at a sandbox are on record: the next one
	// has this number or a higher one (L-53). Zero: none.
	Attempts uint32

	// PodResources is what the pod as a whole was last given of CPU and memory
	// (al-1). Nil: nobody knows, or its spec says nothing of that; then the pod
	// as a whole is not resized.
	PodResources *v1.ResourceRequirements

	// IgnoreRestartAll takes the rules with the action RestartAllContainers
	// for absent (the feature RestartAllContainersOnContainerExits is off). By
	// default they are honoured (rt-138). Package status has no such switch: it
	// should see pods without these rules then.
	IgnoreRestartAll bool

	// Compat keeps some ways of the kubelet that are otherwise mended.
	Compat Compat

	// Now is when the plan is to be carried out; only back-off looks at it.
	Now time.Time
}

// Compat are the kubelet's ways that a user could tell from ours and may have
// come to count on. The zero value has none of them. A second running copy of a
// container is not among them (lq-12): nobody can want that. That back-off
// ends with the agent is [BackoffConfig].Forgetful.
type Compat struct {
	// ReplaceCreated makes a new instance, with the next restart count, where
	// one was created and never started, and leaves the old one lying (rt-52,
	// lq-13). Otherwise that one is started.
	ReplaceCreated bool
}

// A Plan is the next step towards the pod that is wanted, in the order in
// which it is to be carried out: stop the pod or the instances in Kill, remove
// those in Remove, create the sandbox, start the ephemeral and the init
// containers that Start lists, do what Resize lists, start the regular ones.
// The zero value has nothing to do.
//
// Pointers in it lead into the Input it was computed from. As JSON a plan has
// all its data but these: specs and statuses are named by container and ID.
type Plan struct {
	// KillPod says to stop every container and every sandbox of the pod,
	// whatever their state. Kill is then empty, and unless CreateSandbox is
	// set Start is empty too: the pod stays down.
	KillPod bool `json:"killPod,omitzero"`

	// KillReason is one of the Kill* reasons if KillPod is set.
	KillReason string `json:"killReason,omitzero"`

	// CreateSandbox says to create a sandbox with this Attempt.
	CreateSandbox bool   `json:"createSandbox,omitzero"`
	Attempt       uint32 `json:"attempt,omitzero"`

	// SandboxID is the sandbox that containers are started in; "" if it is
	// yet to be made or there is none.
	SandboxID string `json:"sandboxID,omitzero"`

	// Changed tells in words why the newest sandbox has to go; "" if it stays
	// or if there is none. With CreateSandbox it is the occasion for the event
	// SandboxChanged (rt-26).
	Changed string `json:"changed,omitzero"`

	// Waits tells in words what the rest of the pod is waiting for; "" if
	// nothing is held back.
	Waits string `json:"waits,omitzero"`

	// Kill lists the instances to stop before anything is started, in order.
	// If one of them cannot be stopped nothing must be started: its name may
	// be in Start.
	Kill []Kill `json:"kill,omitzero"`

	// Remove lists the instances to remove from the runtime so that the whole
	// pod starts over in its sandbox (rt-140), in order. Nothing else is
	// planned then. If one of them cannot be removed, those after it must not
	// be: the last ones are the reason for all of it, and what finds them next
	// goes on where this ended.
	Remove []Removal `json:"remove,omitzero"`

	// Start lists the containers to start, in order: ephemeral, init, regular,
	// each in the order of the spec.
	Start []Start `json:"start,omitzero"`

	// Resize lists the running instances that are to be given other
	// resources, in the order of the spec: init, regular.
	Resize []Resize `json:"resize,omitzero"`

	// ResizePod is set if the pod as a whole is to be given other resources.
	// What comes first, it or parts of Resize, is for package allocation to say.
	ResizePod *PodResize `json:"resizePod,omitzero"`
}

// A Kill is one instance that has to stop.
type Kill struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
	ID   string `json:"id"` // of the instance, as runtime.ContainerStatus.ID

	// Container is its spec.
	Container *v1.Container `json:"-"`

	// Reason is one of the Kill* reasons.
	Reason string `json:"reason"`

	// Message says it in the words of the event Killing (rt-47 … rt-49,
	// rt-60, rt-62, rt-66, al-15).
	Message string `json:"message"`

	// GracePeriodSeconds is that of the probe which condemned the instance,
	// to be taken in place of the pod's terminationGracePeriodSeconds, but not
	// of its deletionGracePeriodSeconds (rt-108, rt-109). Nil: there was no
	// such probe, or it has none of its own.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitzero"`
}

// Why a pod or an instance is stopped, as data.
const (
	KillSandboxChanged    = "SandboxChanged"    // the pod: its sandbox cannot be used any more (rt-39)
	KillCompleted         = "Completed"         // the pod: nothing runs that keeps it up, and nothing is to start (rt-50)
	KillInitFailed        = "InitFailed"        // the pod: an init container failed for good (rt-64, rt-66)
	KillDefinitionChanged = "DefinitionChanged" // made from another name or image than the spec has (rt-30)
	KillLivenessProbe     = "LivenessProbe"     // its liveness probe failed (rt-48, rt-62)
	KillStartupProbe      = "StartupProbe"      // its startup probe failed (rt-48, rt-60)
	KillResize            = "Resize"            // it can get other resources only by a restart (al-15)
	KillUnknownState      = "UnknownState"      // the runtime lost track of it (rt-47)
	KillDuplicate         = "Duplicate"         // another instance of the name runs and counts (lq-12)
	KillOldSandbox        = "OldSandbox"        // runs in a sandbox that is not the pod's any more
)

// A Start is one container to start: as a new instance, or by starting the
// one that Resume names.
type Start struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`

	// Container is its spec; an ephemeral container is seen as a regular one.
	Container *v1.Container `json:"-"`

	// Reason is one of the Start* reasons, Why the same in words.
	Reason string `json:"reason"`
	Why    string `json:"why"`

	// RestartCount of the instance to create: one more than any instance had,
	// over all sandboxes and by the record (rt-75, L-53).
	RestartCount int32 `json:"restartCount"`

	// NoStatus: the runtime holds no instance of it. RestartCount is that of
	// the record then, 0 without one, and the log directory may know better
	// (rt-75).
	NoStatus bool `json:"noStatus,omitzero"`

	// Last is the newest instance that has exited, in any sandbox, or that is
	// on record as such ([Input].Ended); nil if there is none.
	Last *runtime.ContainerStatus `json:"-"`

	// NotBefore is set while the container is in back-off: the start is not
	// to be tried before (rt-94). Zero: it is due.
	NotBefore time.Time `json:"notBefore,omitzero"`

	// Delay is the back-off that follows Last, whether or not it has passed.
	// Zero: there is none. In JSON it is in nanoseconds.
	Delay time.Duration `json:"delay,omitzero"`

	// Resume is the ID of an instance that was created for this very start
	// and never started: start it instead of creating another (lq-13). ""
	// creates one. An instance to resume is never in back-off: it passed when
	// it was created.
	Resume string `json:"resume,omitzero"`
}

// Why a container is started, as data.
const (
	StartNew               = "New"               // it has no instance yet
	StartNewSandbox        = "NewSandbox"        // its instances belong to former sandboxes
	StartExited            = "Exited"            // it exited and is to run again
	StartCreated           = "Created"           // an instance was created and never started
	StartUnknownState      = "UnknownState"      // the runtime lost track of the last instance
	StartDefinitionChanged = "DefinitionChanged" // the running instance is replaced
	StartLivenessProbe     = "LivenessProbe"     // so it is, for its liveness probe failed
	StartStartupProbe      = "StartupProbe"      // so it is, for its startup probe failed
	StartResize            = "Resize"            // so it is, to get other resources
)

// Empty reports whether the plan lists nothing at all. A plan whose starts are
// all in back-off is not empty: somebody has to say so, and to come back at
// RetryAt.
func (p Plan) Empty() bool {
	return !p.KillPod && !p.CreateSandbox && len(p.Kill) == 0 && len(p.Remove) == 0 && len(p.Start) == 0 &&
		len(p.Resize) == 0 && p.ResizePod == nil
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
