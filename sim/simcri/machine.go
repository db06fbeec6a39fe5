package simcri

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/sim"
)

// name is the name of the runtime, the prefix of container IDs.
const name = "fakecri"

// A machine is a CRI runtime in memory. Each agent that connects to it has its own
// engine and state directory, which is a copy of the previous agent's directory at the
// instant when that was killed.
type machine struct {
	fake  *fakecri.Runtime
	setup sim.Setup
	dir   string

	listing sync.Mutex    // held during a list, which does not block
	age     time.Duration // of the list

	mu         sync.Mutex                         // guards the fields below
	agents     int                                // number of agents so far
	saved      bool                               // the directory of the last agent was copied when it was killed
	uids       map[string]types.UID               // pod UIDs by ID of container or sandbox
	containers map[string]runtime.ContainerStatus // last states by ID without prefix
	sandboxes  map[string]runtime.SandboxStatus
}

// MachineIn returns a value for sim.Config.Machine. The agents of each machine have their
// state in a new subdirectory of dir, which must exist. The subdirectory is not removed.
func MachineIn(dir string) func(sim.Setup) (sim.Machine, error) {
	return func(s sim.Setup) (sim.Machine, error) {
		dir, err := os.MkdirTemp(dir, "run")
		if err != nil {
			return nil, fmt.Errorf("simcri: %w", err)
		}
		m := &machine{
			setup: s, dir: dir, uids: map[string]types.UID{},
			containers: map[string]runtime.ContainerStatus{}, sandboxes: map[string]runtime.SandboxStatus{},
		}
		images := map[string]fake.Behavior{}
		for image, b := range s.Images { // the simulation runs the probes itself
			images[image] = fake.Behavior{StartDelay: b.StartDelay, Exit: b.Exit, StopDelay: b.StopDelay, IgnoreTERM: b.IgnoreTERM, Exec: sim.Exec}
		}
		m.fake, err = fakecri.New(fakecri.Config{
			Name: name, Seed: s.Seed, Observe: m.observe, Behaviors: fake.Behaviors{Images: images}, PodCheckpoints: true,
			Faults: func(c fake.Call) (f fake.Fault) {
				if c.Method == "ListContainers" || c.Method == "ListPodSandbox" {
					f.Stale = m.age // the caller of the list holds listing
				}
				return f
			},
		})
		if err != nil {
			return nil, fmt.Errorf("simcri: %w", err)
		}
		return m, nil
	}
}

// KeepsRecords returns true: the engine checkpoints restart counts and results; see
// sim.Machine.
func (m *machine) KeepsRecords() bool { return true }

// RunsHooks returns true.
func (m *machine) RunsHooks() bool { return true }

func (m *machine) stateDir(agent int) string {
	return filepath.Join(m.dir, fmt.Sprint("agent-", agent))
}

// Connect implements sim.Machine.
func (m *machine) Connect(a *sim.Agent) (runtime.Runtime, error) {
	m.mu.Lock()
	m.agents++
	n, saved := m.agents, m.saved
	m.saved = false
	m.mu.Unlock()
	dir := m.stateDir(n)
	if !saved {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("simcri: %w", err)
		}
	}
	svc := &services{RuntimeService: m.fake, ImageManagerService: m.fake, machine: m, agent: a}
	rt, err := cri.New(cri.Config{
		Name: name, Runtime: svc, Images: svc.images(),
		Dirs:      cri.Dirs{Root: filepath.Join(dir, "root"), PodLogs: filepath.Join(m.dir, "logs")},
		Providers: cri.Providers{RestoreFrom: func(pod *v1.Pod) (string, error) { return sim.RestoreFrom(pod), nil }},
	})
	if err != nil {
		return nil, fmt.Errorf("simcri: %w", err)
	}
	return &engine{rt, a}, nil
}

// AgentKilled implements sim.Machine. It copies the state directory for the next agent.
func (m *machine) AgentKilled(*sim.Agent) {
	m.mu.Lock()
	n := m.agents
	m.mu.Unlock()
	if err := os.CopyFS(m.stateDir(n+1), os.DirFS(m.stateDir(n))); err != nil {
		return // the next agent starts with the files copied so far
	}
	m.mu.Lock()
	m.saved = true
	m.mu.Unlock()
}

// Exit implements sim.Machine. An error means that there is no such running container.
func (m *machine) Exit(uid types.UID, container string, code int32, oom bool) {
	if oom {
		_ = m.fake.OOM(string(uid), container)
		return
	}
	_ = m.fake.Exit(string(uid), container, code)
}

// Hang implements sim.Machine. An error means that there is no such running container.
func (m *machine) Hang(uid types.UID, container string) { _ = m.fake.Hang(string(uid), container) }

// Crash implements sim.Machine.
func (m *machine) Crash(uid types.UID) {
	for _, c := range m.fake.Containers(string(uid)) {
		if c.State == fakecri.Running {
			_ = m.fake.Kill(c.Pod, c.Name) // it may have exited meanwhile
		}
	}
	_ = m.fake.KillSandbox(string(uid)) // there may be none
}

// Remove implements sim.Machine.
func (m *machine) Remove(ctx context.Context, uid types.UID) {
	for _, sb := range m.fake.Sandboxes(string(uid)) {
		err := m.fake.StopPodSandbox(ctx, sb.ID)
		_ = errors.Join(err, m.fake.RemovePodSandbox(ctx, sb.ID)) // fails only if ctx is done
	}
}

// An engine is a cri.Runtime that records its calls of SyncPod and KillPod, and passes
// its events through the simulation.
type engine struct {
	*cri.Runtime
	agent *sim.Agent
}

func (e *engine) SyncPod(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	e.agent.Pause("SyncPod", req.Pod.UID)
	e.agent.RecordCall(sim.SyncPodCalled, req.Pod.UID, req.Pod, nil)
	return e.Runtime.SyncPod(ctx, req)
}

func (e *engine) KillPod(ctx context.Context, req runtime.KillRequest) error {
	e.agent.Pause("KillPod", req.UID)
	e.agent.RecordCall(sim.KillPodCalled, req.UID, req.Pod, req.GracePeriodSeconds)
	return e.Runtime.KillPod(ctx, req)
}

func (e *engine) Watch(ctx context.Context, changed func(uid types.UID)) error {
	return e.agent.WatchEvents(ctx, e.Runtime.Watch, changed)
}
