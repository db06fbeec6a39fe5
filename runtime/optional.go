package runtime

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A Checker is a Runtime that reports its health. Without it, a runtime whose Pods succeeds is
// healthy.
type Checker interface {
	// Check queries the runtime. An error means that the runtime did not respond.
	Check(ctx context.Context) (Health, error)
}

// Health is the health that a runtime reports. The zero value is healthy.
type Health struct {
	// Runtime is nil if the runtime can start containers.
	Runtime error
	// Network is nil if pods can have a network. Pods in the host network start in any case.
	Network error
}

// A Watcher is a Runtime that emits an event when a pod may have changed. Events are not trusted:
// package pleg inspects the pod, which may cost nothing (see [AllowAnnounced]). Without it, or while it
// fails, changes are found by listing. If every change of a sandbox or container, including its removal, has
// an event after it can be observed, pleg lists rarely; pleg detects missing events and lists more often.
type Watcher interface {
	// Watch calls changed with the UID of a pod that may have changed, from one goroutine. It
	// blocks until ctx is done and returns nil, or returns an error if it cannot continue.
	// changed must not block.
	Watch(ctx context.Context, changed func(uid types.UID)) error
}

// An Execer is a Runtime that runs commands in its containers. Without it, exec probes, exec
// hooks and kubectl exec fail.
type Execer interface {
	// Exec runs cmd in the container until it exits. It returns an error if ctx is done or
	// timeout expires first; zero means no timeout. If the command exits with another code
	// than 0, the code is in the result and the error is nil.
	Exec(ctx context.Context, containerID string, cmd []string, timeout time.Duration) (ExecResult, error)
}

// An ExecResult is the output and exit code of a command.
type ExecResult struct {
	Stdout, Stderr []byte
	ExitCode       int32
}

// A GarbageCollector is a Runtime that keeps terminated containers until CollectGarbage. Without
// it, the runtime is expected to remove them by itself.
type GarbageCollector interface {
	// CollectGarbage removes terminated containers, sandboxes that are not ready, and their
	// logs according to policy. It continues after a failure and joins the errors.
	CollectGarbage(ctx context.Context, policy GCPolicy) error
}

// A GCPolicy selects the terminated containers to remove.
type GCPolicy struct {
	// MinAge is the time since creation before which a container is kept. Zero means none.
	MinAge time.Duration

	// MaxPerContainer is the number of terminated instances to keep of each container of a
	// pod. Zero keeps none; a negative value keeps all. The kubelet keeps 1.
	MaxPerContainer int

	// MaxContainers is the number of terminated instances to keep on the node. Zero or a
	// negative value means no limit.
	MaxContainers int

	// Keep returns false for a pod that was deleted and whose termination has finished, so
	// that none of its containers are kept. If nil, all pods are kept.
	Keep func(uid types.UID) bool

	// Terminated reports whether the pod has terminated and its status is known, so that its
	// containers and sandboxes need not be kept although the pod object and its directories
	// are. It is set to free disk space under node pressure. If nil, no pod is.
	Terminated func(uid types.UID) bool
}
