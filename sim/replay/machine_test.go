package replay_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/sim/record"
	"github.com/kubeparts/kubeparts/sim/replay"
	"github.com/kubeparts/kubeparts/status"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// A machine outlives its agents, of which one is recorded.
type machine struct {
	*testing.T
	fake      *fakecri.Runtime
	fault     func(fake.Call) fake.Fault // nil: there are none
	source    *podsource.Memory
	sink      *status.MemorySink
	state     string // root directory of the agents
	recording string // directory
}

// recordMachine records what happens on a machine, and returns the directory of the recording.
func recordMachine(t *testing.T, happens func(m *machine)) string {
	m := &machine{recording: t.TempDir(), state: stateDir(t), sink: new(status.MemorySink)}
	synctest.Test(t, func(t *testing.T) {
		m.T = t
		images := map[string]fake.Behavior{"crashonce": {Exit: &fake.Exit{After: 3 * time.Second, Code: 1, Crashes: 1}}}
		for name, b := range behaviors {
			images[name] = b
		}
		var err error
		m.fake, err = fakecri.New(fakecri.Config{
			Behaviors: fake.Behaviors{Images: images},
			Faults: func(c fake.Call) fake.Fault {
				if m.fault != nil {
					if f := m.fault(c); f != (fake.Fault{}) {
						return f
					}
				}
				return fake.Fault{Delay: time.Duration(len(c.Method)) * time.Millisecond}
			},
		})
		require.NoError(t, err)
		happens(m)
	})
	return m.recording
}

// run runs an agent, the next one of the machine, while do uses it.
func (m *machine) run(recorded bool, do func()) {
	dir := m.recording
	if !recorded {
		dir = m.TempDir()
	}
	r, err := record.New(record.Config{Dir: dir, Node: "node-1"})
	require.NoError(m, err)
	r.RuntimeState(m.state)
	rt, err := cri.New(cri.Config{
		Name: "fakecri", Runtime: r.RuntimeService(m.fake), Images: r.ImageService(m.fake), Dirs: cri.Dirs{Root: m.state, PodLogs: m.state + "/logs"},
	})
	require.NoError(m, err)
	mounter := new(volumetest.Mounter)
	empty, err := emptydir.New(emptydir.Config{Mounter: mounter})
	require.NoError(m, err)
	volumes, err := volume.New(volume.Config{
		RootDir: m.state, Plugins: []volume.Plugin{empty}, Mounter: mounter, StatsPeriod: -1, Hooks: volume.Hooks{Operated: r.Volumes},
	})
	require.NoError(m, err)
	m.source = new(podsource.Memory)
	cfg := agent.Config{
		NodeName: "node-1", Runtime: rt, Sources: map[string]podsource.PodSource{podsource.APISource: m.source}, Sink: m.sink,
		HostIPs:    func() []string { return []string{"10.0.0.1"} },
		Subsystems: agent.Subsystems{Probes: prober.Handlers{Exec: slowProbe{}}, Volumes: volumes},
		Adjust:     []compose.Adjustment{compose.Adjust(func(c *prober.Config) { c.Path = m.state + "/" + record.ProbesFile })},
	}
	r.Agent(&cfg)
	a, err := agent.New(cfg)
	require.NoError(m, err)
	ctx, cancel := context.WithCancel(m.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = volumes.Run(ctx) })
	running.Go(func() { _ = a.Run(ctx) })
	recorder, stop := context.WithCancel(m.Context())
	written := make(chan error)
	go func() { written <- r.Run(recorder) }()
	do()
	stop() // before the agent, as if both were killed
	require.NoError(m, <-written)
	cancel()
	running.Wait()
}

// A slowProbe succeeds after a second.
type slowProbe struct{}

func (slowProbe) Probe(ctx context.Context, _ prober.Target) (prober.Outcome, error) {
	select {
	case <-time.After(time.Second):
		return prober.Outcome{Result: runtime.ProbeSuccess}, nil
	case <-ctx.Done():
		return prober.Outcome{}, ctx.Err()
	}
}

// An observer has what a replayed agent did, in this order.
type observer struct {
	mu       sync.Mutex
	actions  []string // "StartContainer main", "Startup probe of main", "unmounted", "DeletePod"; ending in ": error" if it failed
	statuses []v1.PodStatus
	names    map[string]string // of containers by ID
}

func (o *observer) add(err error, words ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	action := strings.TrimSpace(strings.Join(words, " "))
	if err != nil {
		action += ": error"
	}
	o.actions = append(o.actions, action)
}

// options returns the options of a replay that o observes.
func (o *observer) options() replay.Options {
	o.names = map[string]string{}
	return replay.Options{
		Adjust: []compose.Adjustment{
			compose.Adjust(func(c *cri.Config) { c.Runtime = observedRuntime{c.Runtime, o} }),
			compose.Adjust(func(c *agent.Config) {
				c.Sink = observedSink{c.Sink, o}
				if c.Subsystems.Volumes != nil {
					c.Subsystems.Volumes = observedVolumes{c.Subsystems.Volumes, o}
				}
				if c.Subsystems.Probes.Exec != nil {
					c.Subsystems.Probes.Exec = observedProbe{c.Subsystems.Probes.Exec, o}
				}
			}),
		},
	}
}

type observedRuntime struct {
	internalapi.RuntimeService
	o *observer
}

func (r observedRuntime) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	id, err := r.RuntimeService.RunPodSandbox(ctx, config, handler)
	r.o.add(err, "RunPodSandbox")
	return id, err
}

func (r observedRuntime) CreateContainer(ctx context.Context, sandbox string, config *runtimeapi.ContainerConfig, pod *runtimeapi.PodSandboxConfig) (string, error) {
	id, err := r.RuntimeService.CreateContainer(ctx, sandbox, config, pod)
	name := fmt.Sprintf("%s %d", config.Metadata.Name, config.Metadata.Attempt)
	r.o.add(err, "CreateContainer", name)
	r.o.mu.Lock()
	defer r.o.mu.Unlock()
	r.o.names[id] = name
	return id, err
}

func (r observedRuntime) StartContainer(ctx context.Context, id string) error {
	err := r.RuntimeService.StartContainer(ctx, id)
	r.o.mu.Lock()
	name := r.o.names[id]
	r.o.mu.Unlock()
	r.o.add(err, "StartContainer", name)
	return err
}

func (r observedRuntime) StopContainer(ctx context.Context, id string, timeout int64) error {
	err := r.RuntimeService.StopContainer(ctx, id, timeout)
	r.o.add(err, "StopContainer")
	return err
}

type observedSink struct {
	status.Sink
	o *observer
}

func (s observedSink) UpdatePodStatus(ctx context.Context, pod *v1.Pod, status v1.PodStatus) error {
	s.o.mu.Lock()
	s.o.statuses = append(s.o.statuses, status)
	s.o.mu.Unlock()
	return s.Sink.UpdatePodStatus(ctx, pod, status)
}

func (s observedSink) DeletePod(ctx context.Context, pod *v1.Pod) error {
	s.o.add(nil, "DeletePod")
	return s.Sink.DeletePod(ctx, pod)
}

type observedVolumes struct {
	pipeline.Volumes
	o *observer
}

func (v observedVolumes) Unmount(ctx context.Context, pod *v1.Pod) error {
	err := v.Volumes.Unmount(ctx, pod)
	v.o.add(err, "unmounted")
	return err
}

type observedProbe struct {
	prober.Handler
	o *observer
}

func (p observedProbe) Probe(ctx context.Context, t prober.Target) (prober.Outcome, error) {
	out, err := p.Handler.Probe(ctx, t)
	p.o.add(err, t.Kind.String(), "probe of", t.Container.Name)
	return out, err
}
