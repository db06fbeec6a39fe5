package sim

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// A memory is a Machine over a runtimetest.Runtime. Each call of runtime.Runtime is one
// call to the outside.
type memory struct {
	rt *runtimetest.Runtime

	listing sync.Mutex    // held during a list, which does not block
	age     time.Duration // of the list

	mu  sync.Mutex
	cpu map[string]int64 // CPU of containers in thousandths, by container ID
}

// Memory makes the default Machine: a runtimetest.Runtime with the initial back-off of
// the kubelet, 10 seconds.
func Memory(s Setup) (Machine, error) {
	return MemoryOf(&runtimetest.Runtime{Backoff: 10 * time.Second})(s)
}

// MemoryOf returns a value for Config.Machine that uses rt, for one run: for example a
// runtime with another back-off. The Machine sets rt's Observe, and calls its Inject
// and Behave.
func MemoryOf(rt *runtimetest.Runtime) func(Setup) (Machine, error) {
	return func(s Setup) (Machine, error) { return memoryOf(rt, s) }
}

func memoryOf(rt *runtimetest.Runtime, s Setup) (Machine, error) {
	m := &memory{rt: rt, cpu: map[string]int64{}}
	rt.Observe = func(c runtimetest.Change) {
		s.Observe(Fact{Pod: c.Name, UID: c.UID, Container: c.Container, Sandbox: c.Sandbox, Removed: c.Removed})
	}
	for image, b := range s.Images {
		b.StartDelay += latency(hash(s.Seed, 5, 0, 0, image)) // so that no two containers start at one instant
		m.rt.Behave(image, b)
	}
	m.rt.Inject(func(c fake.Call) (f fake.Fault) {
		if c.Method == "Pods" {
			f.Stale = m.age // the caller of Pods holds listing
		}
		return f
	})
	return m, nil
}

func (m *memory) Connect(a *Agent) (runtime.Runtime, error) { return memoryClient{m, m.rt, a}, nil }

func (m *memory) AgentKilled(*Agent) {}

// Exit and Hang ignore the error for a container that does not run.
func (m *memory) Exit(uid types.UID, container string, code int32, _ bool) {
	_ = m.rt.Exit(uid, container, code)
}
func (m *memory) Hang(uid types.UID, container string)    { _ = m.rt.Hang(uid, container) }
func (m *memory) Crash(uid types.UID)                     { m.rt.Crash(uid) }
func (m *memory) Remove(_ context.Context, uid types.UID) { m.rt.Remove(uid) }

// A memoryClient is the runtime of one agent.
type memoryClient struct {
	memory *memory
	rt     *runtimetest.Runtime
	agent  *Agent
}

func (c memoryClient) Pods(ctx context.Context) (out []*runtime.Pod, err error) {
	err = c.agent.List(ctx, Call{Method: "Pods"}, func(age time.Duration) error {
		c.memory.listing.Lock()
		defer c.memory.listing.Unlock()
		c.memory.age = age
		out, err = c.rt.Pods(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (c memoryClient) PodStatus(ctx context.Context, uid types.UID) (out *runtime.PodStatus, err error) {
	err = c.agent.Call(ctx, Call{Method: "PodStatus", UID: uid}, func() error {
		out, err = c.rt.PodStatus(ctx, uid)
		c.memory.addResources(out)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (c memoryClient) SyncPod(ctx context.Context, req runtime.SyncRequest) (out runtime.SyncResult, err error) {
	var failed error // the result of SyncPod, unlike the error of a fault
	err = c.agent.Call(ctx, Call{Method: "SyncPod", UID: req.Pod.UID}, func() error {
		c.agent.RecordCall(SyncPodCalled, req.Pod.UID, req.Pod, nil)
		out, failed = c.rt.SyncPod(ctx, req)
		if c.resize(ctx, req.Pod) {
			out.Actions = append(out.Actions, runtime.Action{Kind: runtime.ResizePodInPlace, Target: req.Pod.Name})
		}
		return nil
	})
	if err != nil {
		return runtime.SyncResult{}, err
	}
	return out, failed
}

func (c memoryClient) KillPod(ctx context.Context, req runtime.KillRequest) error {
	return c.agent.Call(ctx, Call{Method: "KillPod", UID: req.UID}, func() error {
		c.agent.RecordCall(KillPodCalled, req.UID, req.Pod, req.GracePeriodSeconds)
		return c.rt.KillPod(ctx, req)
	})
}

func (c memoryClient) Check(ctx context.Context) (out runtime.Health, err error) {
	err = c.agent.Call(ctx, Call{Method: "Check"}, func() error {
		out, err = c.rt.Check(ctx)
		return err
	})
	return out, err
}

func (c memoryClient) CollectGarbage(ctx context.Context, policy runtime.GCPolicy) error {
	return c.agent.Call(ctx, Call{Method: "CollectGarbage"}, func() error { return c.rt.CollectGarbage(ctx, policy) })
}

// Watch implements runtime.Watcher.
func (c memoryClient) Watch(ctx context.Context, changed func(uid types.UID)) error {
	return c.agent.WatchEvents(ctx, c.rt.Watch, changed)
}
