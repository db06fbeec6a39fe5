package runtime

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Runtime runs pods.
//
// Kubelet-grade semantics over container-level runtimes come from runtime/cri.
// runtimetest.TestRuntime checks that a value keeps this contract.
type Runtime interface {
	Lister
	Syncer
}

// A Lister tells what there is. It changes nothing, may be called at any time
// and from any goroutine, and answers from the runtime, not from memory of its
// own calls: after a restart of the caller it says the same. When ctx ends its
// methods return, whatever the runtime does.
type Lister interface {
	// Pods lists every pod the runtime holds anything of: sandboxes and
	// containers, running or not, made by this agent or by an earlier one.
	// It is one cheap pass, called as often as every second; what needs a
	// call per container belongs to PodStatus.
	//
	// The order of pods is newest first. The caller owns the result. On
	// error nothing is returned: half a list would read as containers that
	// died.
	Pods(ctx context.Context) ([]*Pod, error)

	// PodStatus inspects one pod in full. A pod the runtime holds nothing of
	// is no error: the answer then has no sandboxes and no containers.
	//
	// What vanishes while it is being inspected is left out; any other
	// failure fails the whole answer. ObservedAt is taken before the first
	// read. The caller owns the result.
	PodStatus(ctx context.Context, uid types.UID) (*PodStatus, error)
}

// A Syncer changes what there is. For one pod, calls never overlap and a
// KillPod is never followed by a SyncPod; for different pods they run in
// parallel.
type Syncer interface {
	// SyncPod takes the pod one step towards req.Pod, and returns. One step
	// is what can be done without waiting for a container: it creates the
	// sandbox and starts the first init container, and leaves the second to
	// the call made after the first was seen to exit.
	//
	// It is idempotent: called again with nothing changed it does nothing,
	// and a container that runs as specified is never touched. It never
	// starts a second instance of a container while one runs, also not when
	// an earlier call was cut short, timed out or lost its answer.
	//
	// The error joins the failures of the result's actions; the result is
	// valid in either case. When ctx ends SyncPod stops early and returns
	// ctx's error; what it had begun is found again by the next look.
	SyncPod(ctx context.Context, req SyncRequest) (SyncResult, error)

	// KillPod stops every container of the pod (TERM, the grace period,
	// KILL) and its sandboxes, and returns nil only when nothing of the pod
	// runs. Killing a pod that does not run, or that does not exist, is no
	// error. Exited containers stay, so that their exit can be read.
	//
	// When ctx ends it returns ctx's error at once; the caller may call again
	// with a shorter grace, which then counts.
	KillPod(ctx context.Context, req KillRequest) error
}

// A SyncRequest says what a pod should be.
type SyncRequest struct {
	// Pod is what is wanted: defaulted, with UID, name and namespace set; one
	// without a UID is refused with an error that says so, and never with a
	// panic. What its fields mean is the Kubernetes API's word: init containers
	// and sidecars in their turn, the policies and rules of restarts,
	// ephemeral containers, a deletion timestamp with which nothing is started.
	// The runtime must not change it.
	Pod *v1.Pod

	// Status is what the caller has seen of the pod, observed after the last
	// SyncPod of it returned. If nil, the runtime looks for itself. Older
	// observations are the way to two instances of one container: don't.
	Status *PodStatus

	// Volumes maps the names of the pod's volumes to where they are ready for
	// use. A container that uses a volume which is not listed is not started
	// (CreateContainerConfigError). Images that are volumes need not be listed:
	// the runtime has them.
	Volumes map[string]Volume

	// Probes are the results that liveness and startup probes have come to.
	// Nil: nobody probes here, and a container that runs counts as live and
	// started (rt-48, rt-60 … rt-62).
	Probes *ProbeResults
}

// A Volume is where one of a pod's volumes is on this machine, ready for use: a
// directory, or a block device.
type Volume struct {
	// Path of its files. Empty if it is a device.
	Path string

	// Device is the path of a block device, or of a link to it, which
	// containers have by their volumeDevices (vol-74). Empty if it is files.
	Device string

	// ReadOnly volumes are not written to, whatever a volumeMount says.
	ReadOnly bool

	// SELinuxRelabel: the files are the pod's own, and get the label of its
	// containers where SELinux is on (vol-72).
	SELinuxRelabel bool
}

// A KillRequest says which pod should stop, and how fast.
type KillRequest struct {
	// UID of the pod. Required.
	UID types.UID

	// Pod is its spec. If nil, the pod is unknown to the agent (an orphan
	// found in the runtime), and what the runtime recorded when it created
	// the containers is used.
	Pod *v1.Pod

	// Status as in SyncRequest. If nil, the runtime looks for itself.
	Status *PodStatus

	// GracePeriodSeconds overrides the pod's own grace period. If nil, that
	// is deletionGracePeriodSeconds, else terminationGracePeriodSeconds of
	// the spec, else what the runtime recorded, else 2 (rt-108).
	GracePeriodSeconds *int64
}

// A SyncResult tells what one SyncPod did, in order.
type SyncResult struct {
	// Actions holds each action that was tried. Empty means that nothing was
	// to be done.
	Actions []Action

	// RetryAt is the earliest time at which a step that was put off (a crash
	// or image back-off) may be tried again. Zero: nothing was put off.
	RetryAt time.Time
}

// An ActionKind names what was done; the names are the kubelet's (rt-73).
type ActionKind string

// The kinds of actions.
const (
	StartContainer   ActionKind = "StartContainer"
	KillContainer    ActionKind = "KillContainer"
	InitContainer    ActionKind = "InitContainer"
	CreatePodSandbox ActionKind = "CreatePodSandbox"
	ConfigPodSandbox ActionKind = "ConfigPodSandbox"
	KillPodSandbox   ActionKind = "KillPodSandbox"
	RemoveContainer  ActionKind = "RemoveContainer"
	ResizePodInPlace ActionKind = "ResizePodInPlace"
)

// An Action is one thing that SyncPod did or failed to do.
type Action struct {
	Kind ActionKind

	// Target is the container's name, or "<pod>_<namespace>" for a sandbox.
	Target string

	// Err is nil if the action succeeded.
	Err error

	// Reason and Message explain Err in the words of the Kubernetes API: the
	// Reason of a failed StartContainer is the waiting reason of its
	// container (CrashLoopBackOff, ErrImagePull, CreateContainerError …).
	Reason  string
	Message string
}

// Waiting says why a container that should run does not, as
// v1.ContainerStateWaiting shows it.
type Waiting struct {
	Reason  string
	Message string
}

// An Ending is the agent's own word on a pod, beside what the runtime shows.
// The zero value says nothing.
type Termination struct {
	// Terminal: no container of the pod will be started again, so that what
	// has exited has exited for good.
	Terminal bool

	// Failed: the pod's phase is Failed whatever its containers did, for this
	// Reason with this Message (Evicted, DeadlineExceeded, an admission's
	// refusal).
	Failed  bool
	Reason  string
	Message string

	// Disruption, if it is not empty: the node ends a pod that could have run
	// on (an eviction, a preemption, a shutdown), and its condition
	// DisruptionTarget says so, with reason TerminationByKubelet and this
	// message (ev-54, ev-62).
	Disruption string
}

// An Event is something a person would want to read about a pod or the node,
// as kubectl describe shows it. Reasons are the kubelet's (spec section 11).
type Event struct {
	// Object is whom it concerns: a pod, with FieldPath naming a container
	// ("spec.containers{web}"), or the node.
	Object v1.ObjectReference

	// Type is v1.EventTypeNormal or v1.EventTypeWarning.
	Type    string
	Reason  string
	Message string

	// Annotations of the event object, for machines: what an eviction was
	// decided by (ev-53). Nil: none.
	Annotations map[string]string
}
