package runtime

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A Checker is a Runtime that can tell how it is. Without it, a runtime that
// answers lists counts as healthy.
type Checker interface {
	// Check asks the runtime how it is. An error means that it did not
	// answer.
	Check(ctx context.Context) (Health, error)
}

// Health is a runtime's word on itself. The zero value is healthy.
type Health struct {
	// Runtime is nil if the runtime can start containers.
	Runtime error
	// Network is nil if pods get a network; pods of the host network start
	// in any case (sl-4).
	Network error
}

// A Watcher is a Runtime that says when something changed. What it says is a
// hint, never a fact: pleg looks for itself. Without it, or when it fails,
// changes are found by listing. Hints that announce every change (of a sandbox
// or a container, its removal included), once it can be seen, make lists rare;
// pleg notices those that don't, and lists more often.
type Watcher interface {
	// Watch calls changed with the UID of a pod that may have changed, from
	// one goroutine, until ctx ends (nil) or it cannot go on (an error).
	// changed does not block.
	Watch(ctx context.Context, changed func(uid types.UID)) error
}

// An Execer is a Runtime that runs commands in its containers. Without it,
// exec probes, exec hooks and kubectl exec are refused.
type Execer interface {
	// Exec runs cmd in the container to its end, or until timeout (0: none)
	// or ctx ends it, which is an error. A command that ran and failed is no
	// error: its exit code is in the result.
	Exec(ctx context.Context, containerID string, cmd []string, timeout time.Duration) (ExecResult, error)
}

// An ExecResult is what became of a command.
type ExecResult struct {
	Stdout, Stderr []byte
	ExitCode       int32
}

// A GarbageCollector is a Runtime that keeps what has exited until told.
// Without it, the runtime is taken to clean up after itself.
type GarbageCollector interface {
	// CollectGarbage removes exited containers, dead sandboxes and their logs
	// as policy says. It goes on after a failure and joins the errors.
	CollectGarbage(ctx context.Context, policy GCPolicy) error
}

// A GCPolicy says which dead containers may go (rt-128 … rt-136).
type GCPolicy struct {
	// MinAge spares containers created less than this ago. Zero: none are
	// spared.
	MinAge time.Duration

	// MaxPerContainer is how many dead instances to keep of each container of
	// a pod. Zero keeps none; negative keeps all. The kubelet keeps 1.
	MaxPerContainer int

	// MaxContainers is how many dead instances to keep on the node in all.
	// Zero and below: no limit.
	MaxContainers int

	// Removed reports whether nothing of this pod need be kept: no source
	// wants it and its termination has finished. Nil: never.
	Removed func(uid types.UID) bool

	// Ended reports whether the containers and sandboxes of this pod need not be
	// kept, though the pod itself stays, with its directories: it has ended, and
	// its status is known. For who needs the room (cg-11). Nil: never.
	Terminated func(uid types.UID) bool
}
