package sim

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// A machine is what runs the containers of a simulated node, and outlives its
// agents.
type machine interface {
	// connect returns the runtime as the agent behind g has it.
	connect(g *gate) (runtime.Runtime, error)

	// behave says what containers of an image do.
	behave(image string, b Behaviour)

	// What happens to containers without an agent.
	exit(uid types.UID, container string, code int32, oom bool)
	hang(uid types.UID, container string)
	crash(uid types.UID)
	remove(uid types.UID)

	// readyAfter is for NodeConfig.ReadyAfter.
	readyAfter(c runtime.ContainerStatus) time.Duration
}

// A memory is the machine that is a runtimetest.Runtime: an agent's calls are
// those of the contract, each of which is one call of the outside.
type memory struct {
	run *run
	rt  *runtimetest.Runtime
}

func newMemory(r *run) machine {
	return &memory{r, &runtimetest.Runtime{Backoff: 10 * time.Second, Observe: func(c runtimetest.Change) {
		r.note(changeEntry(c.UID, c.Name, c.Container, c.Sandbox, c.Removed))
	}}}
}

// changeEntry returns what a change of the runtime is in a trace.
func changeEntry(uid types.UID, name string, c *runtime.ContainerStatus, sb *runtime.SandboxStatus, removed bool) Entry {
	e := Entry{Pod: name, UID: uid, Container: c, Sandbox: sb}
	switch {
	case c != nil && removed:
		e.Kind = Removed
	case c != nil && c.State == runtime.ContainerRunning:
		e.Kind = Started
	case c != nil:
		e.Kind = Exited
	case removed:
		e.Kind = SandboxRemoved
	case sb.State == runtime.SandboxReady:
		e.Kind = SandboxReady
	default:
		e.Kind = SandboxStopped
	}
	return e
}

func (m *memory) connect(g *gate) (runtime.Runtime, error) { return memoryClient{m.rt, g}, nil }

func (m *memory) behave(image string, b Behaviour) {
	v := runtimetest.Behaviour{
		Stubborn: b.Stubborn, StopDelay: b.StopDelay, ReadyAfter: b.ReadyAfter,
		StartDelay: b.StartDelay + moment(m.run.dice(5, 0, 0, image)), // no two start at one instant
	}
	if b.Exits {
		v.Exit = &runtimetest.Exit{After: b.ExitAfter, Code: b.Code}
		if b.OOM {
			v.Exit.Reason = "OOMKilled"
		}
	}
	m.rt.Behave(image, v)
}

// An error of these says that nothing of the name runs: the step does nothing.
func (m *memory) exit(uid types.UID, container string, code int32, _ bool) {
	_ = m.rt.Exit(uid, container, code)
}
func (m *memory) hang(uid types.UID, container string) { _ = m.rt.Hang(uid, container) }
func (m *memory) crash(uid types.UID)                  { m.rt.Crash(uid) }
func (m *memory) remove(uid types.UID)                 { m.rt.Remove(uid) }

func (m *memory) readyAfter(c runtime.ContainerStatus) time.Duration { return m.rt.ReadyAfter(c) }

// A memoryClient is a memory through a gate.
type memoryClient struct {
	rt   *runtimetest.Runtime
	gate *gate
}

func (c memoryClient) Pods(ctx context.Context) (out []*runtime.Pod, err error) {
	err = c.gate.call(ctx, "Pods", "", func() error {
		out, err = c.rt.Pods(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (c memoryClient) PodStatus(ctx context.Context, uid types.UID) (out *runtime.PodStatus, err error) {
	err = c.gate.call(ctx, "PodStatus", uid, func() error {
		out, err = c.rt.PodStatus(ctx, uid)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (c memoryClient) SyncPod(ctx context.Context, req runtime.SyncRequest) (out runtime.SyncResult, err error) {
	var failed error // of actions: an answer
	err = c.gate.call(ctx, "SyncPod", req.Pod.UID, func() error {
		c.gate.run.note(Entry{Agent: c.gate.agent, Kind: SyncBegan, UID: req.Pod.UID, Pod: req.Pod.Name})
		out, failed = c.rt.SyncPod(ctx, req)
		return nil
	})
	if err != nil {
		return runtime.SyncResult{}, err
	}
	return out, failed
}

func (c memoryClient) KillPod(ctx context.Context, req runtime.KillRequest) error {
	return c.gate.call(ctx, "KillPod", req.UID, func() error {
		c.gate.run.note(Entry{Agent: c.gate.agent, Kind: KillBegan, UID: req.UID, Grace: req.GracePeriodSeconds})
		return c.rt.KillPod(ctx, req)
	})
}

func (c memoryClient) Check(ctx context.Context) (out runtime.Health, err error) {
	err = c.gate.call(ctx, "Check", "", func() error {
		out, err = c.rt.Check(ctx)
		return err
	})
	return out, err
}

func (c memoryClient) CollectGarbage(ctx context.Context, policy runtime.GCPolicy) error {
	return c.gate.call(ctx, "CollectGarbage", "", func() error { return c.rt.CollectGarbage(ctx, policy) })
}

// Watch passes hints on, each after its moment.
func (c memoryClient) Watch(ctx context.Context, changed func(uid types.UID)) error {
	h := hinter{gate: c.gate, changed: changed, coming: map[types.UID]bool{}}
	defer h.wg.Wait()
	return c.rt.Watch(ctx, func(uid types.UID) { h.hint(ctx, uid) })
}
