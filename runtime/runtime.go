package runtime

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Runtime runs pods. For one pod, the caller must not make concurrent calls of SyncPod and KillPod
// and must not call SyncPod after KillPod; calls for different pods may be concurrent.
//
// Kubelet-grade semantics over container-level runtimes come from runtime/cri.
// runtimetest.TestRuntime checks that an implementation conforms.
type Runtime interface {
	Lister

	// SyncPod takes one step towards req.Pod and returns. A step consists of all actions
	// that need not wait for a container: it creates the sandbox and starts the first init container; the
	// second is started by a later call, after the first has been observed to exit.
	//
	// It is idempotent: if nothing has changed it does nothing, and a container that runs as
	// specified is not changed. It must never start a second instance of a running container,
	// also if an earlier call was canceled, timed out or lost its response.
	//
	// The error joins the errors of the result's actions; the result is valid in any case. When
	// ctx is done SyncPod stops early and returns ctx's error; the next inspection observes
	// the containers that it had started.
	SyncPod(ctx context.Context, req SyncRequest) (SyncResult, error)

	// KillPod stops every container of the pod (TERM, the grace period, KILL) and its sandboxes.
	// It returns nil only when nothing of the pod runs, which includes pods that do not exist.
	// Terminated containers are kept, so that their exit codes can be read.
	//
	// When ctx is done it returns ctx's error immediately; the caller may call again with a shorter
	// grace period, which then applies.
	KillPod(ctx context.Context, req KillRequest) error
}

// A Lister observes pods. It changes nothing and is safe for concurrent use. Results come from the
// runtime, not from a record of earlier calls, so that they survive a restart of the caller. Its
// methods return when ctx is done, even if the runtime does not respond.
type Lister interface {
	// Pods lists every pod that has a sandbox or a container in the runtime, running or not,
	// created by this process or an earlier one. It is called up to once per second and must
	// not need a call per container, unlike PodStatus.
	//
	// Pods are in order of creation, newest first. The caller owns the result. On error the
	// result is nil: a partial list would be taken for terminated containers.
	Pods(ctx context.Context) ([]*Pod, error)

	// PodStatus inspects one pod. For a pod that the runtime does not have, it returns a status
	// without sandboxes and containers, and no error.
	//
	// Objects that are removed during the inspection are omitted; any other failure is
	// returned. ObservedAt is taken before the first read. The caller owns the result. With a
	// context of AllowAnnounced it may return an announced status.
	PodStatus(ctx context.Context, uid types.UID) (*PodStatus, error)
}

// A SyncRequest is the desired state of a pod.
type SyncRequest struct {
	// Pod is the desired pod: defaulted, with UID, name and namespace. Without a UID SyncPod
	// returns an error. Its fields have the meaning that the Kubernetes API defines: the order
	// of init containers and sidecars, restart policies and rules, ephemeral containers, a
	// deletion timestamp, with which nothing is started. The runtime must not change it.
	Pod *v1.Pod

	// Status is an inspection of the pod that was made after its last SyncPod returned. If
	// nil, the runtime inspects the pod. An older one must not be passed, since it could
	// result in two instances of a container.
	Status *PodStatus

	// Volumes contains the mounted volumes, by volume name. A container that uses one that is
	// missing is not started (CreateContainerConfigError). Image volumes may be omitted: the
	// runtime provides them.
	Volumes map[string]Volume

	// Probes are the results of liveness and startup probes. If nil, a running container
	// counts as live and started.
	Probes *ProbeResults
}

// A Volume is a volume of a pod: a mounted directory, a block device, or the files themselves.
type Volume struct {
	// Path of the directory. Empty for a block device and if Content is set.
	Path string

	// Device is the path of the block device, or of a symbolic link to it, for volumeDevices
	// of containers. Empty for a directory.
	Device string

	// ReadOnly volumes are mounted read-only, even if a volumeMount is not.
	ReadOnly bool

	// SELinuxRelabel: the files belong to the pod alone and are relabeled for its containers
	// if SELinux is enabled.
	SELinuxRelabel bool

	// Content is the content of a volume that is not on this host, for runtimes whose
	// containers have copies of the files. Nil for a directory or a block device.
	Content *Content
}

// A KillRequest is a pod to stop.
type KillRequest struct {
	// UID of the pod. Required.
	UID types.UID

	// Pod is the pod's object. If nil, the pod is an orphan, and the values are used that the
	// runtime stored when it created the containers.
	Pod *v1.Pod

	// Status as in SyncRequest. If nil, the runtime inspects the pod.
	Status *PodStatus

	// GracePeriodSeconds overrides the pod's own grace period. If nil, that
	// is deletionGracePeriodSeconds, else terminationGracePeriodSeconds of
	// the spec, else the stored one, else 2 (rule rt-108).
	GracePeriodSeconds *int64
}

// A SyncResult is the result of one SyncPod.
type SyncResult struct {
	// Actions are the attempted actions, in order. Empty if nothing had to be done.
	Actions []Action

	// RetryAt is the earliest time at which an action in back-off (a crash loop, an image
	// pull) may be retried. Zero if there is none.
	RetryAt time.Time
}

// An ActionKind is a kind of action, named as in the kubelet.
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

	// Reason and Message describe Err as the Kubernetes API does: the Reason of a failed
	// StartContainer is the waiting reason of its container (CrashLoopBackOff, ErrImagePull,
	// CreateContainerError …).
	Reason  string
	Message string
}

// A Termination is a decision of the agent about a pod that its containers do not show. The zero
// value is none.
type Termination struct {
	// Terminal: no container of the pod will be started again.
	Terminal bool

	// Failed: the pod's phase is Failed whatever its containers did, with this Reason and
	// Message (Evicted, DeadlineExceeded, a Rejection).
	Failed  bool
	Reason  string
	Message string

	// Disruption is the message of the condition DisruptionTarget, with reason
	// TerminationByKubelet, of a pod that the node terminates although it could run: by
	// eviction, preemption or shutdown. Empty if it is not.
	Disruption string
}

// An Event is an event about a pod or the node, as kubectl describe shows it. Reasons are the
// kubelet's.
type Event struct {
	// Object is a pod, with FieldPath if the event is about a container
	// ("spec.containers{web}"), or the node.
	Object v1.ObjectReference

	// Type is v1.EventTypeNormal or v1.EventTypeWarning.
	Type    string
	Reason  string
	Message string

	// Annotations of the event object, such as the measurements behind an eviction. May be
	// nil.
	Annotations map[string]string
}
