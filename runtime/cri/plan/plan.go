package plan

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// Input is the complete input of [Compute].
type Input struct {
	// Pod is the desired pod: defaulted, with UID, name and namespace set. If nil,
	// the plan is empty.
	Pod *v1.Pod

	// Status is the observed state of the pod in the runtime, instances newest first
	// as [runtime.PodStatus] requires. Nil means that the runtime has nothing of the
	// pod.
	Status *runtime.PodStatus

	// Probes are the results of liveness and startup probes. If nil, there is no
	// prober, and every running container counts as live and started.
	Probes *runtime.ProbeResults

	// Backoff supplies the delays of crashing containers; Compute does not change
	// it. If nil, exited containers are restarted without delay.
	Backoff Delays

	// History is state that the runtime no longer reports, from the caller's
	// checkpoint.
	History History

	// RestoreFrom is the directory of the checkpoint from which the pod is restored, instead of being created from its
	// spec; "" if none. It is for a pod that never had a sandbox. The caller must store it before it carries out a plan
	// with Plan.Restore, and pass it until such a plan was carried out without a failure, or until the plan has no
	// Plan.Restore: a checkpoint is used once.
	RestoreFrom string

	// IgnoreRestartAll ignores rules with the action RestartAllContainers, as if the
	// feature RestartAllContainersOnContainerExits were disabled. Package status has no
	// such option: pass it pods without these rules.
	IgnoreRestartAll bool

	// Now is the time at which the plan is carried out. Only back-off depends on it.
	Now time.Time
}

// History is the state of a pod that must survive the removal of its containers. The
// zero value means that nothing is stored. Maps are keyed by container name; a
// missing container has no entry.
type History struct {
	// RestartCounts is the highest restart count of the instances of each container.
	// With the instances in the runtime it makes restart counts grow monotonically.
	RestartCounts map[string]int32

	// FirstRestartCounts is the restart count of the instance at which the back-off
	// of a container begins, because all earlier instances had been removed when it was
	// created. A missing container begins with 0. Only back-off depends on it.
	FirstRestartCounts map[string]int32

	// Exits is the newest exit of each container whose instance was removed to restart
	// all containers: the value of Removal.Ended. Back-off continues from it unless the
	// runtime has a newer exited instance. Only RestartCount, Hash, ExitCode and
	// the times are used.
	Exits map[string]*runtime.ContainerStatus

	// Terminated is the exit code of each regular container that has terminated and
	// will not restart. It applies if the runtime has no instance of the container,
	// because an operator removed it: the container is then not started again. It is
	// not used for pods with [v1.ContainerRestartRuleActionRestartAllContainers].
	Terminated map[string]int32

	// SandboxAttempts is the number of attempts to create a sandbox: the next
	// sandbox has this attempt number or a higher one.
	SandboxAttempts uint32

	// PodResources are the CPU and memory resources last set at pod level. If nil, the
	// pod level is not resized.
	PodResources *v1.ResourceRequirements
}

// A Plan contains the next operations towards the desired pod, in the order in which
// they must be carried out: stop the pod or the instances in Kill, remove those in
// Remove, create or restore the sandbox, start the ephemeral and init containers in Start, carry
// out Resize, start the regular containers. The zero value contains no operation.
//
// Its pointers point into the Input. Its JSON form omits them: specs and statuses are
// identified by container name and ID.
type Plan struct {
	// KillPod means to stop every container and every sandbox of the pod, whatever
	// their state. Kill is then empty. Unless CreateSandbox is set, Start is empty too,
	// and the pod remains stopped.
	KillPod bool `json:"killPod,omitzero"`

	// KillReason is one of the Kill constants if KillPod is set.
	KillReason string `json:"killReason,omitzero"`

	// CreateSandbox means to create a sandbox with this Attempt.
	CreateSandbox bool   `json:"createSandbox,omitzero"`
	Attempt       uint32 `json:"attempt,omitzero"`

	// Restore is the checkpoint of a restore that is not complete; "" if the pod is not restored. With CreateSandbox, the
	// sandbox is restored from it, with a created instance of each container in Start, which are all sidecars and regular
	// containers, and these instances are started. Without, the restore continues with those in Start that have Resume. If
	// one of them cannot be started, the following must not be, and the sandbox should be removed: the next Compute plans
	// another restore.
	Restore string `json:"restore,omitzero"`

	// SandboxID is the sandbox in which containers are started; "" if it does not
	// exist yet.
	SandboxID string `json:"sandboxID,omitzero"`

	// Changed is the reason, as text, why the newest sandbox is replaced or stopped; ""
	// if it is kept or does not exist. With CreateSandbox, it is the condition for the
	// event SandboxChanged (rule rt-26).
	Changed string `json:"changed,omitzero"`

	// Waits is the text of the condition that the remaining containers wait for; "" if
	// none wait.
	Waits string `json:"waits,omitzero"`

	// Kill lists the instances to stop before anything is started, in order. If one
	// of them cannot be stopped, nothing must be started: its container may be in Start.
	Kill []Kill `json:"kill,omitzero"`

	// Replaced lists the instances that KillPod or Kill stops in order to start their
	// containers again. It must be stored before they are stopped, and reported as
	// runtime.ContainerStatus.Replaced: the start may have to wait, or fail, and the exit
	// code of an instance that was stopped does not decide whether there is another.
	Replaced []Replaced `json:"replaced,omitzero"`

	// Remove lists the instances to remove from the runtime, in order, to restart all
	// containers in the pod's sandbox (rule rt-140). The plan then contains no
	// other operation. If an instance cannot be removed, those after it must not be:
	// the last ones are the trigger, by which the next Compute continues.
	Remove []Removal `json:"remove,omitzero"`

	// Start lists the containers to start, in order: ephemeral, init, regular, each in
	// the order of the spec.
	Start []Start `json:"start,omitzero"`

	// Resize lists the running instances to resize in place, in the order of the
	// spec: init, regular.
	Resize []Resize `json:"resize,omitzero"`

	// ResizePod is set if the pod-level resources change. Package allocation determines
	// the order of ResizePod and the items of Resize.
	ResizePod *PodResize `json:"resizePod,omitzero"`
}

// A Kill is one instance to stop.
type Kill struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
	ID   string `json:"id"` // of the instance, as runtime.ContainerStatus.ID

	// Container is the spec of the container.
	Container *v1.Container `json:"-"`

	// Reason is one of the Kill constants.
	Reason string `json:"reason"`

	// Message is the message of the event Killing.
	Message string `json:"message"`

	// GracePeriodSeconds is the terminationGracePeriodSeconds of the probe that
	// failed. It replaces the pod's terminationGracePeriodSeconds, but not its
	// deletionGracePeriodSeconds. Nil if no probe failed or the probe has none.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitzero"`
}

// Replaced is one instance that is stopped to be replaced.
type Replaced struct {
	Name string `json:"name"`
	ID   string `json:"id"` // of the instance, as runtime.ContainerStatus.ID
}

// Reasons for which a pod or an instance is stopped.
const (
	KillSandboxChanged    = "SandboxChanged"    // the pod: its sandbox is not usable
	KillCompleted         = "Completed"         // the pod: all of its containers have terminated
	KillInitFailed        = "InitFailed"        // the pod: an init container failed and will not restart
	KillDefinitionChanged = "DefinitionChanged" // the spec changed since the instance was created
	KillLivenessProbe     = "LivenessProbe"     // its liveness probe failed
	KillStartupProbe      = "StartupProbe"      // its startup probe failed
	KillResize            = "Resize"            // its resizePolicy requires a restart
	KillUnknownState      = "UnknownState"      // the runtime reports an unknown state
	KillDuplicate         = "Duplicate"         // another instance of the container runs
	KillOldSandbox        = "OldSandbox"        // it runs in a former sandbox of the pod
)

// A Start is one container to start: as a new instance, or by starting the instance
// Resume.
type Start struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`

	// Container is the spec of the container, also for ephemeral containers.
	Container *v1.Container `json:"-"`

	// Reason is one of the Start constants, Why the same as text.
	Reason string `json:"reason"`
	Why    string `json:"why"`

	// RestartCount is the restart count of the instance to create or restore: one more
	// than the highest of all instances in all sandboxes and in History.
	RestartCount int32 `json:"restartCount"`

	// NoStatus reports whether the runtime has no instance of the container.
	// RestartCount is then derived from History, or 0; the caller may derive a higher
	// one from the log directory.
	NoStatus bool `json:"noStatus,omitzero"`

	// Last is the newest exited instance, in any sandbox or in History.Exits; nil if
	// there is none.
	Last *runtime.ContainerStatus `json:"-"`

	// NotBefore is the end of the back-off: the container must not be started before.
	// Zero means that it is not in back-off.
	NotBefore time.Time `json:"notBefore,omitzero"`

	// Delay is the back-off after Last, whether or not it has passed. Zero means
	// none. In JSON it is in nanoseconds.
	Delay time.Duration `json:"delay,omitzero"`

	// Resume is the ID of an instance that was created for this start and not
	// started: it is started instead of a new one. If "", an instance is created. An
	// instance to resume is never in back-off, because the back-off had passed when it
	// was created.
	Resume string `json:"resume,omitzero"`
}

// Reasons for which a container is started.
const (
	StartNew               = "New"               // it has no instance
	StartNewSandbox        = "NewSandbox"        // its instances belong to former sandboxes
	StartExited            = "Exited"            // it exited and is restarted
	StartCreated           = "Created"           // an instance was created and never started
	StartUnknownState      = "UnknownState"      // the runtime reports an unknown state
	StartDefinitionChanged = "DefinitionChanged" // the running instance is replaced
	StartLivenessProbe     = "LivenessProbe"     // the same, because its liveness probe failed
	StartStartupProbe      = "StartupProbe"      // the same, because its startup probe failed
	StartResize            = "Resize"            // the same, because its resources changed
	StartRestored          = "Restored"          // its process continues from the checkpoint Plan.Restore
)

// Empty reports whether the plan contains no operation. A plan whose starts are all
// in back-off is not empty: the caller must report the back-off and compute again at
// RetryAt.
func (p Plan) Empty() bool {
	return !p.KillPod && !p.CreateSandbox && len(p.Kill) == 0 && len(p.Remove) == 0 && len(p.Start) == 0 &&
		len(p.Resize) == 0 && p.ResizePod == nil
}

// RetryAt returns the earliest time at which a back-off ends; the zero time if no
// start is in back-off.
func (p Plan) RetryAt() time.Time {
	var at time.Time
	for i := range p.Start {
		if t := p.Start[i].NotBefore; !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	return at
}

// InBackoff reports whether the start is in back-off.
func (s Start) InBackoff() bool { return !s.NotBefore.IsZero() }
