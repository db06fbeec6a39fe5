package sim

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Machine is what runs the containers of a simulated node: a runtime, and
// what happens to containers without an agent. It outlives agents. Its methods
// are called by one goroutine at a time, but for Died.
//
// One whose runtime keeps a record of its own, which goes on when an operator
// removes all of a pod, has a method Remembers() bool that says so: the laws ask
// more of it.
//
// [Memory] makes one of runtimetest.Runtime, and package simcri one of the engine
// of runtime/cri over a CRI runtime in memory.
type Machine interface {
	// Connect returns the runtime as a new agent has it: each of its calls that
	// has an effect, or sees one, goes through a.Call. It is used for health,
	// hints and garbage as well if it has the powers.
	Connect(a *Agent) (runtime.Runtime, error)

	// Died says that the agent was killed, at the instant at which it was.
	Died(a *Agent)

	// What happens to the newest running instance of a container, or to all of a
	// pod. There may be none; then nothing happens.
	Exit(uid types.UID, container string, code int32, oom bool)
	Hang(uid types.UID, container string)
	Crash(uid types.UID)
	Remove(ctx context.Context, uid types.UID)
}

// A Setup is what a Machine is made with.
type Setup struct {
	Seed uint64

	// Images says what containers do, by the image: of all that there will be.
	Images map[string]Behaviour

	// Observe has to be told every change of a container or sandbox, in order
	// and at its instant: the truth that laws are held against. It does not
	// block, and may be called with a lock held.
	Observe func(Fact)
}

// A Fact is one change of one thing that a Machine holds. What it points to is
// its own.
type Fact struct {
	Pod string // its name, if that is known
	UID types.UID

	// Container or Sandbox is how it is now, or was last if Removed: it is gone.
	Container *runtime.ContainerStatus
	Sandbox   *runtime.SandboxStatus
	Removed   bool
}

// entry returns what the fact is in a trace.
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
