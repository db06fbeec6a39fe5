package agent_test

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podsource/manifest"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
)

// A node is an agent over a runtime in memory that a test runs.
type node struct {
	*agent.Agent
	runtime *runtimetest.Runtime
	source  *podsource.Memory
	sink    *status.MemorySink
	stop    func() error // ends Run and returns its error
}

// start runs an agent for cfg, completed with a runtime, a source and a sink in
// memory where it has none.
func start(t *testing.T, cfg agent.Config) *node {
	t.Helper()
	n := &node{source: new(podsource.Memory), sink: new(status.MemorySink)}
	if cfg.Runtime == nil {
		cfg.Runtime = new(runtimetest.Runtime)
	}
	n.runtime, _ = cfg.Runtime.(*runtimetest.Runtime)
	if cfg.Sources == nil {
		cfg.Sources = map[string]podsource.PodSource{podsource.APISource: n.source}
	}
	if cfg.Sink == nil {
		cfg.Sink = n.sink
	} else {
		cfg.Sink = status.Tee(n.sink, cfg.Sink)
	}
	var err error
	n.Agent, err = agent.New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- n.Run(ctx) }()
	n.stop = sync.OnceValue(func() error {
		cancel()
		return <-ran
	})
	t.Cleanup(func() { assert.NoError(t, n.stop()) })
	return n
}

func newPod(name string) *v1.Pod {
	return manifest.Default(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name)},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: name}}},
	})
}

func (n *node) phase(name string) v1.PodPhase {
	s, _ := n.sink.Status(types.UID("uid-" + name))
	return s.Phase
}

func (n *node) runs(t *testing.T) (names []string) {
	t.Helper()
	pods, err := n.runtime.Pods(t.Context())
	require.NoError(t, err)
	for _, pod := range pods {
		for _, c := range pod.Containers {
			if c.State == runtime.ContainerRunning {
				names = append(names, pod.Name)
			}
		}
	}
	return names
}

func TestNewNamesTheMissingField(t *testing.T) {
	full := func() agent.Config {
		return agent.Config{
			Runtime: new(runtimetest.Runtime), Sink: new(status.MemorySink),
			Sources: map[string]podsource.PodSource{"file": new(podsource.Memory)},
		}
	}
	_, err := agent.New(full())
	require.NoError(t, err)
	for want, clear := range map[string]func(*agent.Config){
		"agent: Config.Runtime is nil":                                func(c *agent.Config) { c.Runtime = nil },
		"agent: Config.Sources is empty":                              func(c *agent.Config) { c.Sources = nil },
		"agent: Config.Sink is nil":                                   func(c *agent.Config) { c.Sink = nil },
		`agent: podsource: MergeConfig.Static: "x" is not in Sources`: func(c *agent.Config) { c.Static = []string{"x"} },
		"agent: Config.Adjust of pipeline.Config: sets Runtime to nil": func(c *agent.Config) {
			c.Adjust = append(c.Adjust, compose.Adjust(func(p *pipeline.Config) { p.Runtime = nil }))
		},
		"agent: podworker: negative": func(c *agent.Config) {
			c.Adjust = append(c.Adjust, compose.Adjust(func(w *podworker.Config) { w.Retry = -1 }))
		},
	} {
		cfg := full()
		clear(&cfg)
		_, err := agent.New(cfg)
		assert.ErrorContains(t, err, want)
	}
}

// settle waits until pleg has read the changes of a sync, 5 ms after it.
func settle() {
	time.Sleep(5 * time.Millisecond)
	synctest.Wait()
}

func TestPodsKeepRunningWhenTheAgentStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, agent.Config{})
		n.source.Set(newPod("web"))
		settle()
		assert.Equal(t, v1.PodRunning, n.phase("web"))
		require.NoError(t, n.stop())
		time.Sleep(time.Hour)
		assert.Equal(t, []string{"web"}, n.runs(t))
		assert.EqualError(t, n.Run(t.Context()), "agent: Agent.Run was called before")
		assert.ErrorIs(t, n.Drain(t.Context()), podworker.ErrRunReturned)

		next := start(t, agent.Config{Runtime: n.runtime})
		next.source.Set(newPod("web"))
		settle()
		s, _ := next.sink.Status("uid-web")
		assert.Equal(t, v1.PodRunning, s.Phase)
		assert.Zero(t, s.ContainerStatuses[0].RestartCount, "the next agent takes the pod over")
	})
}

func TestAFailedComponentStopsTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := agent.New(agent.Config{
			Runtime: new(runtimetest.Runtime), Sink: new(status.MemorySink),
			Sources: map[string]podsource.PodSource{"file": new(podsource.Memory)},
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = a.PLEG().Run(ctx) }()
		synctest.Wait()
		assert.ErrorContains(t, a.Run(t.Context()), "pleg")
	})
}

func TestAdjustGetsEachConfigurationComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var missing []string
		has := func(what string, ok bool) {
			if !ok {
				missing = append(missing, what)
			}
		}
		var worked atomic.Int32
		adjust := []compose.Adjustment{
			compose.Adjust(func(c *pipeline.Config) {
				has("Pipeline", c.Runtime != nil && c.Status != nil && c.Probes != nil && c.Network != nil && c.Relister != nil)
				has("nil subsystems", c.Resources == pipeline.Resources{} && c.Mirrors == nil && c.Admission.Admitter == nil)
			}),
			compose.Adjust(func(c *podworker.Config) {
				has("Workers", c.Handler != nil && c.StatusCache != nil && c.Table != nil)
				c.Hooks.Synced = func(podworker.SyncInfo) { worked.Add(1) }
			}),
			compose.Adjust(func(c *podworker.LoopConfig) {
				has("Loop", c.Workers != nil && c.Garbage != nil && c.Node.Name == "edge-1" && reflect.DeepEqual(c.Sources, []string{"api"}))
			}),
			compose.Adjust(func(c *podsource.MergeConfig) { has("Merge", c.Sink != nil && c.Sources["api"] != nil) }),
			compose.Adjust(func(c *status.Config) {
				has("Status", c.Sink != nil && len(c.Facts) == 1)
			}),
			compose.Adjust(func(c *prober.Config) {
				has("Prober", c.Status != nil && c.Handlers.HTTPGet != nil && c.HostIPs != nil)
			}),
		}
		n := start(t, agent.Config{
			NodeName: "edge-1", Adjust: adjust, Subsystems: agent.Subsystems{Probes: prober.Handlers{HTTPGet: prober.HTTPGet{}}}, HostIPs: func() []string { return nil },
		})
		n.source.Set(newPod("web"))
		synctest.Wait()
		assert.Empty(t, missing)
		assert.Positive(t, worked.Load(), "hooks set by Adjust are called")
		assert.NotNil(t, n.Prober())
		assert.NoError(t, n.Healthy())
		assert.NoError(t, n.Health().Runtime())
		assert.Len(t, n.Table().Desired(), 1)
		assert.NoError(t, n.Status().Flush(t.Context()))
	})
}

// A removed container does not cause a sync of its pod.
func TestARemovedContainerDoesNotMakeItsPodDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var synced atomic.Int32
		n := start(t, agent.Config{Adjust: []compose.Adjustment{compose.Adjust(func(c *podworker.Config) {
			c.Resync = 24 * time.Hour
			c.Hooks.Synced = func(podworker.SyncInfo) { synced.Add(1) }
		})}})
		n.source.Set(newPod("web"))
		settle()
		for range 2 { // one dead instance is kept, the other is collected
			require.NoError(t, n.runtime.Exit("uid-web", "main", 1))
			settle()
		}
		before := synced.Load()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		pods, err := n.runtime.Pods(t.Context())
		require.NoError(t, err)
		require.Len(t, pods[0].Containers, 2, "one was removed")
		assert.Equal(t, before, synced.Load())
	})
}

// scripted is a handler whose probes succeed for the pod "ready" only.
type scripted struct{}

func (scripted) Probe(_ context.Context, t prober.Target) (prober.Outcome, error) {
	if t.Pod.Name == "ready" {
		return prober.Outcome{Result: runtime.ProbeSuccess}, nil
	}
	return prober.Outcome{Result: runtime.ProbeFailure, Output: "not yet"}, nil
}

func TestProbesReachTheStatusAndTheRuntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, agent.Config{Subsystems: agent.Subsystems{Probes: prober.Handlers{TCPSocket: scripted{}}}})
		probe := &v1.Probe{ProbeHandler: v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{}}, PeriodSeconds: 10, FailureThreshold: 1, SuccessThreshold: 1, TimeoutSeconds: 1}
		ready, dead := newPod("ready"), newPod("dead")
		ready.Spec.Containers[0].ReadinessProbe = probe
		dead.Spec.Containers[0].LivenessProbe = probe
		n.source.Set(ready, dead)
		time.Sleep(time.Second)
		synctest.Wait()
		s, _ := n.sink.Status("uid-ready")
		assert.True(t, status.IsReady(&s), "at once, not at the next resync or period")
		time.Sleep(time.Minute)
		synctest.Wait()
		s, _ = n.sink.Status("uid-dead")
		assert.Positive(t, s.ContainerStatuses[0].RestartCount)
		n.source.Set()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		assert.Empty(t, n.Prober().History("uid-dead", "main", prober.Liveness))
	})
}

// A world is every optional subsystem, which records its calls.
type world struct {
	mu    sync.Mutex
	calls map[string]int
}

func (w *world) call(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[what]++
}

func (w *world) Admit(context.Context, *v1.Pod) *runtime.Rejection { w.call("admit"); return nil }
func (w *world) Mount(context.Context, *v1.Pod) (map[string]runtime.Volume, error) {
	w.call("mount")
	return nil, nil
}
func (w *world) Unmount(context.Context, *v1.Pod) error      { w.call("unmount"); return nil }
func (*world) Has(*v1.Pod) bool                              { return true }
func (w *world) Ensure(context.Context, *v1.Pod) error       { w.call("ensure"); return nil }
func (w *world) Remove(context.Context, types.UID) error     { w.call("remove"); return nil }
func (w *world) Update(context.Context, *v1.Pod) error       { return nil }
func (w *world) Node() (metav1.OwnerReference, bool)         { return metav1.OwnerReference{UID: "node"}, true }
func (w *world) DeleteMirror(context.Context, *v1.Pod) error { w.call("delete mirror"); return nil }
func (w *world) CreateMirror(context.Context, *v1.Pod) error { w.call("create mirror"); return nil }
func (w *world) AcquireImages(context.Context, *v1.Pod) (func(), error) {
	w.call("hold")
	return func() { w.call("release") }, nil
}

func TestOptionalSubsystemsAreConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, table := &world{calls: map[string]int{}}, new(podworker.Table)
		allocated, err := allocation.Open(allocation.Config{Dir: t.TempDir(), Pods: table})
		require.NoError(t, err)
		var reasons sync.Map
		n := start(t, agent.Config{
			Subsystems: agent.Subsystems{Admitters: pipeline.Admitters{w, pipeline.AdmitFunc(func(_ context.Context, pod *v1.Pod) *runtime.Rejection {
				if pod.Name == "bad" {
					return &runtime.Rejection{Reason: "Unwelcome", Message: "it is bad"}
				}
				return nil
			})},
				Volumes: w, Cgroups: w, Mirrors: w, Images: w, Allocation: allocated},
			Table:  table,
			Record: func(e runtime.Event) { reasons.Store(e.Reason, true) },
		})
		n.source.Set(newPod("web"), newPod("bad"))
		synctest.Wait()
		assert.True(t, table.Synced(), "the caller's Table is the Loop's")
		s, _ := n.sink.Status("uid-bad")
		assert.Equal(t, "Unwelcome", s.Reason)
		_, recorded := reasons.Load("Unwelcome")
		assert.True(t, recorded)
		assert.Equal(t, 2, w.calls["admit"])
		assert.Positive(t, w.calls["mount"])
		assert.Positive(t, w.calls["ensure"])
		assert.Positive(t, w.calls["hold"])
		assert.Equal(t, w.calls["hold"], w.calls["release"])
		n.source.Set()
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Positive(t, w.calls["unmount"])
		assert.Positive(t, w.calls["remove"])
	})
}

// Checks that allocate resources follow those that do not, so the order must be kept.
func TestAdmittersAreCalledInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string // by the only pod worker
		check := func(name string, rejects bool) pipeline.Admitter {
			return pipeline.AdmitFunc(func(context.Context, *v1.Pod) *runtime.Rejection {
				asked = append(asked, name)
				if rejects {
					return &runtime.Rejection{Reason: name}
				}
				return nil
			})
		}
		n := start(t, agent.Config{Subsystems: agent.Subsystems{Admitters: pipeline.Admitters{check("first", false), check("second", true), check("third", true)}}})
		n.source.Set(newPod("web"))
		synctest.Wait()
		assert.Equal(t, []string{"first", "second"}, asked)
		s, _ := n.sink.Status("uid-web")
		assert.Equal(t, "second", s.Reason)
	})
}

func TestStaticPodsGetMirrorPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, files := &world{calls: map[string]int{}}, new(podsource.Memory)
		pod := newPod("static")
		pod.Annotations = map[string]string{runtime.ConfigHashAnnotation: "1"}
		files.Set(pod)
		start(t, agent.Config{Subsystems: agent.Subsystems{Mirrors: w}, Sources: map[string]podsource.PodSource{podsource.FileSource: files}, Static: []string{podsource.FileSource}})
		synctest.Wait()
		assert.Positive(t, w.calls["create mirror"])
	})
}

func TestDrainTerminatesAllPodsAndDeliversTheirStatuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, agent.Config{})
		n.source.Set(newPod("web"), newPod("db"))
		synctest.Wait()
		require.Len(t, n.runs(t), 2)
		require.NoError(t, n.Drain(t.Context()))
		assert.Empty(t, n.runs(t))
		for _, name := range []string{"web", "db"} {
			s, _ := n.sink.Status(types.UID("uid-" + name))
			assert.NotNil(t, s.ContainerStatuses[0].State.Terminated, name)
			assert.True(t, status.Terminal(s.Phase), name)
		}
		n.source.Set(newPod("late"))
		time.Sleep(time.Hour)
		assert.Empty(t, n.runs(t), "the sources have been stopped")
		assert.NoError(t, n.Drain(t.Context()))
	})
}

func TestStoppedSourcesSpecifyNoMorePods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, agent.Config{})
		n.source.Set(newPod("web"))
		synctest.Wait()
		require.NoError(t, n.StopSources(t.Context()))
		n.source.Set(newPod("late"))
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"web"}, n.runs(t), "the desired pods stay as they are")
	})
}
