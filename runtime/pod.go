package runtime

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Pod is what a list shows of a pod: cheap to get, enough to see that
// something changed.
type Pod struct {
	UID       types.UID
	Name      string
	Namespace string

	// Source is the name of the pod's source, as a sandbox of it recorded it
	// (src-2); empty if that is not known.
	Source string

	// CreatedAt is when the oldest thing listed here was created.
	CreatedAt time.Time

	// Sandboxes, newest first: by attempt, then creation time, then ID.
	Sandboxes []Sandbox

	// Containers, newest created first, then by ID, those of one container by
	// attempt before that: every instance, not one per name.
	Containers []Container
}

// A Sandbox is what the containers of a pod share, as a list shows it.
type Sandbox struct {
	ID        string
	State     SandboxState
	Attempt   uint32
	CreatedAt time.Time
}

// A Container is one instance of a container, as a list shows it.
type Container struct {
	// ID is unique on the node, and in the form of
	// v1.ContainerStatus.ContainerID: "<runtime name>://<id>".
	ID        string
	Name      string
	SandboxID string
	State     ContainerState
	Attempt   uint32
	CreatedAt time.Time
}

// A PodStatus is all a runtime knows of a pod.
type PodStatus struct {
	UID       types.UID
	Name      string // empty if the runtime holds nothing of the pod
	Namespace string
	Source    string // see Pod

	// IPs of the newest sandbox if that is ready, the primary one first.
	IPs []string

	// Sandboxes, newest first: by attempt, then creation time, then ID.
	Sandboxes []SandboxStatus

	// Containers, newest created first, then by ID, those of one container by
	// RestartCount before that: every instance that has not been removed.
	Containers []ContainerStatus

	// ObservedAt is a time before the first of the reads this is made from:
	// whatever happened before ObservedAt is in here.
	ObservedAt time.Time
}

// A SandboxStatus is a sandbox in full.
type SandboxStatus struct {
	ID        string
	State     SandboxState
	Attempt   uint32
	CreatedAt time.Time

	// HostNetwork: it has the node's network instead of one of its own.
	HostNetwork bool

	// NetworkReported: the runtime said something about the sandbox's network,
	// so that empty IPs mean that it has none.
	NetworkReported bool

	// IPs, the primary one first. The node's own are not listed for host
	// network sandboxes.
	IPs []string

	// RuntimeHandler that it was created with; "" is the runtime's default.
	RuntimeHandler string
}

// A ContainerStatus is one instance of a container in full.
type ContainerStatus struct {
	ID        string // as Container.ID
	Name      string
	SandboxID string
	State     ContainerState

	// RestartCount is how many instances of this container came before.
	RestartCount int32

	// Hash of the spec it was created from (rt-28); 0 if unknown.
	Hash uint64

	Image    string // as the spec named it
	ImageID  string // as the runtime identifies it
	ImageRef string

	CreatedAt time.Time

	// StartedAt is zero while State is ContainerCreated.
	StartedAt time.Time

	// FinishedAt, ExitCode, Reason and Message are of an exited container.
	// Message ends in the termination message, if there is one.
	FinishedAt time.Time
	ExitCode   int32
	Reason     string
	Message    string

	// User that its first process was started as; nil if the runtime does not
	// tell. Shared: don't change it.
	User *v1.ContainerUser

	// StopSignal is what asks it to stop, "" if the runtime does not tell: that of
	// the spec, else of the image, else the runtime's own.
	StopSignal v1.Signal

	// LogPath on this host; "" if the runtime keeps none.
	LogPath string

	// Resources that it was last given, CPU and memory only: what a resize is
	// measured against (al-1, rt-13). Nil if nobody knows. Shared: don't change
	// it.
	Resources *v1.ResourceRequirements
}

// ContainerState is what a container does.
type ContainerState int

// The states of a container (pleg-1). The zero value is unknown.
const (
	ContainerUnknown ContainerState = iota // the runtime lost track of it
	ContainerCreated                       // not started yet
	ContainerRunning
	ContainerExited
)

// String returns the state in lower case: "running".
func (s ContainerState) String() string {
	switch s {
	case ContainerCreated:
		return "created"
	case ContainerRunning:
		return "running"
	case ContainerExited:
		return "exited"
	default:
		return "unknown"
	}
}

// SandboxState is whether containers can run in a sandbox.
type SandboxState int

// The states of a sandbox. The zero value is unknown.
const (
	SandboxUnknown SandboxState = iota
	SandboxReady
	SandboxNotReady // stopped, or its network is gone
)

// String returns the state in lower case: "ready".
func (s SandboxState) String() string {
	switch s {
	case SandboxReady:
		return "ready"
	case SandboxNotReady:
		return "notready"
	default:
		return "unknown"
	}
}

// Running reports whether anything of the pod runs: a container, or a sandbox
// that is ready.
func (s *PodStatus) Running() bool {
	for i := range s.Containers {
		if s.Containers[i].State == ContainerRunning {
			return true
		}
	}
	for i := range s.Sandboxes {
		if s.Sandboxes[i].State == SandboxReady {
			return true
		}
	}
	return false
}

// Container returns the newest created instance of the named container
// (rt-10), or nil. It points into s.
func (s *PodStatus) Container(name string) *ContainerStatus {
	for i := range s.Containers {
		if s.Containers[i].Name == name {
			return &s.Containers[i]
		}
	}
	return nil
}

// Brief returns what a list would have shown of the pod, or nil if the runtime
// holds nothing of it.
func (s *PodStatus) Pod() *Pod {
	if len(s.Sandboxes) == 0 && len(s.Containers) == 0 {
		return nil
	}
	p := &Pod{UID: s.UID, Name: s.Name, Namespace: s.Namespace, Source: s.Source}
	oldest := func(t time.Time) {
		if p.CreatedAt.IsZero() || t.Before(p.CreatedAt) {
			p.CreatedAt = t
		}
	}
	for _, sb := range s.Sandboxes {
		p.Sandboxes = append(p.Sandboxes, Sandbox{ID: sb.ID, State: sb.State, Attempt: sb.Attempt, CreatedAt: sb.CreatedAt})
		oldest(sb.CreatedAt)
	}
	for _, c := range s.Containers {
		p.Containers = append(p.Containers, Container{
			ID: c.ID, Name: c.Name, SandboxID: c.SandboxID, State: c.State,
			Attempt: uint32(c.RestartCount), CreatedAt: c.CreatedAt,
		})
		oldest(c.CreatedAt)
	}
	return p
}
