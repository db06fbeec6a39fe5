package simcri

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/sim"
)

// name of the runtime, which begins container IDs.
const name = "fakecri"

// A machine is a CRI runtime in memory. Each agent that connects to it has an
// engine of its own, over a state directory of its own: a copy of what the agent
// before it had there when it died.
type machine struct {
	fake  *fakecri.Runtime
	setup sim.Setup
	dir   string

	listing sync.Mutex    // held during a list, which does not block
	age     time.Duration // of its answer

	mu         sync.Mutex                         // guards the fields below
	agents     int                                // that have connected
	saved      bool                               // the directory of the last one was copied when it died
	uids       map[string]types.UID               // of the pods of containers and sandboxes, by ID
	containers map[string]runtime.ContainerStatus // as they were last, by bare ID
	sandboxes  map[string]runtime.SandboxStatus
}

// In returns what makes machines (for sim.Config.Machine) whose agents keep
// their state in dir, which has to be there: each machine in a new directory
// under it, which stays.
func In(dir string) func(sim.Setup) (sim.Machine, error) {
	return func(s sim.Setup) (sim.Machine, error) {
		dir, err := os.MkdirTemp(dir, "run")
		if err != nil {
			return nil, fmt.Errorf("simcri: %w", err)
		}
		m := &machine{
			setup: s, dir: dir, uids: map[string]types.UID{},
			containers: map[string]runtime.ContainerStatus{}, sandboxes: map[string]runtime.SandboxStatus{},
		}
		images := map[string]fakecri.Behaviour{}
		for image, b := range s.Images {
			images[image] = behaviour(b)
		}
		m.fake, err = fakecri.New(fakecri.Config{
			Name: name, Seed: s.Seed, Observe: m.observe, Behaviours: fakecri.Behaviours{Images: images},
			Faults: func(c fakecri.Call) (f fakecri.Fault) {
				if c.Method == "ListContainers" || c.Method == "ListPodSandbox" {
					f.Stale = m.age // its caller holds listing
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

// behaviour returns what fakecri calls it. A start that takes no time is one
// whose moment the call has.
func behaviour(b sim.Behaviour) fakecri.Behaviour {
	f := fakecri.Behaviour{IgnoreTerm: b.Stubborn, StopDelay: b.StopDelay, StartDelay: b.StartDelay}
	if b.Exits {
		f.RunFor, f.ExitCode, f.OOM, f.Crashes = b.ExitAfter, b.Code, b.OOM, b.Times
		if b.OOM {
			f.ExitCode = 0
		}
	}
	return f
}

// Remembers implements sim.Machine: an engine has a journal.
func (m *machine) Remembers() bool { return true }

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
		Dirs: cri.Dirs{Root: filepath.Join(dir, "root"), PodLogs: filepath.Join(m.dir, "logs")},
	})
	if err != nil {
		return nil, fmt.Errorf("simcri: %w", err)
	}
	return &engine{rt, a}, nil
}

// Died implements sim.Machine: what the agent had written is kept for the next
// one as it is now.
func (m *machine) Died(*sim.Agent) {
	m.mu.Lock()
	n := m.agents
	m.mu.Unlock()
	if err := os.CopyFS(m.stateDir(n+1), os.DirFS(m.stateDir(n))); err != nil {
		return // the next agent begins with what there is
	}
	m.mu.Lock()
	m.saved = true
	m.mu.Unlock()
}

// Exit implements sim.Machine. An error says that nothing of the name runs.
func (m *machine) Exit(uid types.UID, container string, code int32, oom bool) {
	if oom {
		_ = m.fake.OOM(string(uid), container)
		return
	}
	_ = m.fake.Exit(string(uid), container, code)
}

// Hang implements sim.Machine. An error says that nothing of the name runs.
func (m *machine) Hang(uid types.UID, container string) { _ = m.fake.Hang(string(uid), container) }

// Crash implements sim.Machine.
func (m *machine) Crash(uid types.UID) {
	for _, c := range m.fake.Containers(string(uid)) {
		if c.State == fakecri.Running {
			_ = m.fake.Kill(c.Pod, c.Name) // it may have ended meanwhile
		}
	}
	_ = m.fake.KillSandbox(string(uid)) // there may be none
}

// Remove implements sim.Machine.
func (m *machine) Remove(ctx context.Context, uid types.UID) {
	for _, sb := range m.fake.Sandboxes(string(uid)) {
		err := m.fake.StopPodSandbox(ctx, sb.ID)
		_ = errors.Join(err, m.fake.RemovePodSandbox(ctx, sb.ID)) // nothing of it can fail but with ctx
	}
}

// An engine is a cri.Runtime that says when a sync and a kill begins, and whose
// hints are those of a simulation.
type engine struct {
	*cri.Runtime
	agent *sim.Agent
}

func (e *engine) SyncPod(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	e.agent.Moment("SyncPod", req.Pod.UID)
	e.agent.Began(sim.SyncBegan, req.Pod.UID, req.Pod, nil)
	return e.Runtime.SyncPod(ctx, req)
}

func (e *engine) KillPod(ctx context.Context, req runtime.KillRequest) error {
	e.agent.Moment("KillPod", req.UID)
	e.agent.Began(sim.KillBegan, req.UID, req.Pod, req.GracePeriodSeconds)
	return e.Runtime.KillPod(ctx, req)
}

func (e *engine) Watch(ctx context.Context, changed func(uid types.UID)) error {
	return e.agent.Hints(ctx, e.Runtime.Watch, changed)
}
