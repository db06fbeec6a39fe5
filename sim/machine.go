package sim

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// A Machine runs the containers of a simulated node. It consists of a runtime, which
// agents use, and of methods that change containers without an agent. It outlives
// agents. Its methods are not called concurrently, except AgentKilled.
//
// A Machine may implement KeepsRecords() bool. If that returns true, the restart counts
// and results of containers survive the removal of a pod's containers by an operator,
// and the invariants are checked after such a removal too. If RunsHooks() bool returns true, the
// postStart hooks of containers are run and recorded with RecordHook, and their invariant is checked.
//
// If the runtime of an agent is a runtime.PodCheckpointer, Checkpoint and Restore steps have an effect. Such a Machine
// calls RecordCheckpoint and RecordRestore.
//
// [Memory] makes a Machine from runtimetest.Runtime, and package simcri one from the
// engine of runtime/cri over a CRI runtime in memory.
type Machine interface {
	// Connect returns the runtime of a new agent. Each of its calls that has an effect
	// or returns state must go through a.Call. Its optional interfaces are used for
	// health checks, events and garbage collection.
	Connect(a *Agent) (runtime.Runtime, error)

	// AgentKilled is called at the instant at which the agent is killed.
	AgentKilled(a *Agent)

	// Exit makes the newest running instance of a container exit, Hang makes it ignore
	// TERM, Crash stops the sandbox and all containers of a pod, and Remove removes
	// them. If there is no such container or pod, they do nothing.
	Exit(uid types.UID, container string, code int32, oom bool)
	Hang(uid types.UID, container string)
	Crash(uid types.UID)
	Remove(ctx context.Context, uid types.UID)
}

// A Setup is the argument of Config.Machine.
type Setup struct {
	Seed uint64

	// Images is the behavior of containers by image; it has all images of the run.
	Images map[string]fake.Behavior

	// Observe must be called with every change of a container or sandbox, in order and
	// at its instant: invariants are checked against these changes. It does not block,
	// and may be called with a lock held.
	Observe func(Fact)
}

// A Fact is one change of a container or sandbox of a Machine. The pointers must not be
// shared: the receiver keeps them.
type Fact struct {
	Pod string // its name; empty: not available
	UID types.UID

	// Container or Sandbox is the state after the change; if Removed, the last state.
	Container *runtime.ContainerStatus
	Sandbox   *runtime.SandboxStatus
	Removed   bool
}

// entry returns the trace entry of the fact.
func (c Fact) entry() Entry {
	e := Entry{Pod: c.Pod, UID: c.UID, Container: c.Container, Sandbox: c.Sandbox}
	switch {
	case c.Container != nil && c.Removed:
		e.Kind = Removed
	case c.Container != nil && c.Container.State == runtime.ContainerRunning:
		e.Kind = Started
	case c.Container != nil && c.Container.State == runtime.ContainerCreated:
		e.Kind = Created
	case c.Container != nil:
		e.Kind = Exited
	case c.Removed:
		e.Kind = SandboxRemoved
	case c.Sandbox.State == runtime.SandboxReady:
		e.Kind = SandboxReady
	default:
		e.Kind = SandboxStopped
	}
	return e
}
