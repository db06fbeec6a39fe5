package runtime

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Pod is a list entry: cheap to obtain, and sufficient to detect changes.
type Pod struct {
	UID       types.UID
	Name      string
	Namespace string

	// Source is the name of the pod's source, as stored with its sandbox. Empty if unknown.
	Source string

	// CreatedAt is the creation time of the oldest sandbox or container.
	CreatedAt time.Time

	// Sandboxes, newest first: by attempt, then creation time, then ID.
	Sandboxes []Sandbox

	// Containers has every instance, newest first: those of one name by attempt, then by
	// creation time, then by ID.
	Containers []Container
}

// MayRun reports whether a container of the pod runs or its state is unknown, or a sandbox is ready.
func (p *Pod) MayRun() bool {
	return slices.ContainsFunc(p.Containers, func(c Container) bool { return c.State == ContainerRunning || c.State == ContainerUnknown }) ||
		slices.ContainsFunc(p.Sandboxes, func(s Sandbox) bool { return s.State == SandboxReady })
}

// A Sandbox is the list entry of a sandbox.
type Sandbox struct {
	ID        string
	State     SandboxState
	Attempt   uint32
	CreatedAt time.Time
}

// A Container is the list entry of one instance of a container.
type Container struct {
	// ID is unique on the node and has the form of v1.ContainerStatus.ContainerID:
	// "<runtime name>://<id>".
	ID        string
	Name      string
	SandboxID string
	State     ContainerState
	Attempt   uint32
	CreatedAt time.Time
}

// A PodStatus is the state of a pod in the runtime.
type PodStatus struct {
	UID       types.UID
	Name      string // empty if the runtime does not have the pod
	Namespace string
	Source    string // see Pod

	// IPs of the newest sandbox, the primary one first. Empty if it is not ready.
	IPs []string

	// Sandboxes, newest first: by attempt, then creation time, then ID.
	Sandboxes []SandboxStatus

	// Containers has every instance that has not been removed, newest first: those of one
	// name by RestartCount, then by creation time, then by ID.
	Containers []ContainerStatus

	// ObservedAt is a time before the first read: the status includes every change before
	// ObservedAt.
	ObservedAt time.Time
}

// A SandboxStatus is the state of a sandbox.
type SandboxStatus struct {
	ID        string
	State     SandboxState
	Attempt   uint32
	CreatedAt time.Time

	// HostNetwork: the sandbox uses the node's network.
	HostNetwork bool

	// NetworkReported: the runtime reported the sandbox's network, so that empty IPs mean that
	// it has none.
	NetworkReported bool

	// IPs, the primary one first. Empty for sandboxes in the host network.
	IPs []string

	// RuntimeHandler of the sandbox; "" is the runtime's default.
	RuntimeHandler string
}

// A ContainerStatus is the state of one instance of a container.
type ContainerStatus struct {
	ID        string // as Container.ID
	Name      string
	SandboxID string
	State     ContainerState

	// RestartCount is the number of earlier instances of the container.
	RestartCount int32

	// Hash of the container spec at its creation; 0 if unknown.
	Hash uint64

	Image    string // as in the spec
	ImageID  string // as the runtime identifies it
	ImageRef string

	CreatedAt time.Time

	// StartedAt is zero while State is ContainerCreated.
	StartedAt time.Time

	// FinishedAt, ExitCode, Reason and Message are set if State is ContainerExited. Message
	// ends with the termination message, if there is one.
	FinishedAt time.Time
	ExitCode   int32
	Reason     string
	Message    string

	// Starting: it is running, and its postStart hook has not succeeded yet, so that it is not
	// reported as running to clients of the pod.
	Starting bool

	// Replaced: the node stopped this instance in order to start another one, for example
	// because its liveness probe failed, so its container restarts whatever the exit code is.
	// A runtime that does not report it lets a container with the restart policy OnFailure
	// complete if it exits with 0 when it is stopped.
	Replaced bool

	// User of the first process; nil if the runtime does not report it. Must not be changed.
	User *v1.ContainerUser

	// StopSignal is the effective stop signal: that of the spec, else of the image, else the
	// runtime's default. Empty if the runtime does not report it.
	StopSignal v1.Signal

	// LogPath on this host; "" if there is no log file.
	LogPath string

	// Resources are the CPU and memory resources that were last applied, with which a resize is
	// compared. Nil if unknown. Must not be changed.
	Resources *v1.ResourceRequirements
}

// ContainerState is the state of a container.
type ContainerState int

// The states of a container. The zero value is unknown.
const (
	ContainerUnknown ContainerState = iota // the runtime lost its state
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

// SandboxState is the state of a sandbox.
type SandboxState int

// The states of a sandbox. The zero value is unknown.
const (
	SandboxUnknown SandboxState = iota
	SandboxReady
	SandboxNotReady // stopped, or without its network
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

// Running reports whether a container of the pod runs or a sandbox is ready.
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

// Container returns the newest instance of the named container, or nil. The result points into s.
func (s *PodStatus) Container(name string) *ContainerStatus {
	for i := range s.Containers {
		if s.Containers[i].Name == name {
			return &s.Containers[i]
		}
	}
	return nil
}

// Pod returns the list entry of the pod, or nil if it has no sandboxes and no containers.
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
