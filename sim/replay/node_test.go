package replay_test

import (
	"context"
	"hash/fnv"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/sim/record"
	"github.com/kubeparts/kubeparts/sim/replay"
	memory "github.com/kubeparts/kubeparts/status"
)

// A node is a complete agent on a CRI runtime in memory.
type node struct {
	*testing.T
	fake   *fakecri.Runtime
	source *podsource.Memory
}

// A nodeConfig configures a recorded node.
type nodeConfig struct {
	seed    uint64
	latency time.Duration // the most that a call takes
	errors  uint64        // one of so many calls fails; zero: none
	fault   func(fake.Call) error
	adjust  []compose.Adjustment // as in replay.Options
	volumes func(*record.Recorder)
}

// adjusting returns a list of one change.
func adjusting[C any](change func(*C)) []compose.Adjustment {
	return []compose.Adjustment{compose.Adjust(change)}
}

// stateDir returns a directory in memory if possible.
func stateDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "replay")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

var behaviors = map[string]fake.Behavior{
	"crash":    {Exit: &fake.Exit{After: 3 * time.Second, Code: 1}},
	"once":     {Exit: &fake.Exit{After: 5 * time.Second}},
	"stubborn": {IgnoreTERM: true},
	"slow":     {StartDelay: 2 * time.Second, StopDelay: 4 * time.Second},
}

// recordNode records a node that do uses, and returns the directory of the recording.
func recordNode(t testing.TB, cfg nodeConfig, do func(n node)) string {
	dir, state := t.TempDir(), stateDir(t)
	inBubble := func(t *testing.T) {
		r, err := record.New(record.Config{Dir: dir, Node: "node-1", QueueBytes: 1 << 30, MaxBytes: 1 << 30})
		require.NoError(t, err)
		var calls atomic.Uint64
		fake, err := fakecri.New(fakecri.Config{
			Seed: cfg.seed, Behaviors: fake.Behaviors{Images: behaviors},
			Faults: func(c fake.Call) (f fake.Fault) {
				h := fnv.New64a()
				_, _ = h.Write([]byte{byte(cfg.seed), byte(c.Number), byte(c.Number >> 8)})
				_, _ = h.Write([]byte(c.Method + string(c.Pod) + c.Container))
				if cfg.latency > 0 {
					f.Delay = time.Duration(h.Sum64() % uint64(cfg.latency))
				}
				if n := calls.Add(1); cfg.errors > 0 && n > 4 && h.Sum64()>>32%cfg.errors == 0 && c.Method != "GetContainerEvents" {
					f.Err = status.Error(codes.Unavailable, "the runtime restarts")
				}
				if cfg.fault != nil {
					f.Err = cfg.fault(c)
				}
				return f
			},
		})
		require.NoError(t, err)
		runtimeConfig := cri.Config{
			Name: "fakecri", Runtime: r.RuntimeService(fake), Images: r.ImageService(fake), Dirs: cri.Dirs{Root: state + "/root", PodLogs: state + "/logs"},
		}
		require.NoError(t, compose.Apply(cfg.adjust, &runtimeConfig))
		rt, err := cri.New(runtimeConfig)
		require.NoError(t, err)
		n := node{t, fake, new(podsource.Memory)}
		probe := probeHandler{fake, cfg.latency}
		agentConfig := agent.Config{
			NodeName: "node-1", Runtime: rt, Sources: map[string]podsource.PodSource{podsource.APISource: n.source}, Sink: new(memory.MemorySink),
			HostIPs: func() []string { return []string{"10.0.0.1"} }, Subsystems: agent.Subsystems{Probes: prober.Handlers{Exec: probe, TCPSocket: probe}},
		}
		if cfg.volumes != nil {
			cfg.volumes(r)
		}
		require.NoError(t, compose.Apply(cfg.adjust, &agentConfig))
		agentConfig.Adjust = compose.Only(cfg.adjust, agent.Adjustable()...)
		r.Agent(&agentConfig)
		a, err := agent.New(agentConfig)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		recorderCtx, stop := context.WithCancel(t.Context())
		ended, recorded := make(chan error), make(chan error)
		go func() { recorded <- r.Run(recorderCtx) }()
		time.Sleep(123 * time.Millisecond)
		go func() { ended <- a.Run(ctx) }()
		do(n)
		stop() // before the agent, as in a recording that is being written
		require.NoError(t, <-recorded)
		cancel()
		require.NoError(t, <-ended)
	}
	switch t := t.(type) {
	case *testing.T:
		synctest.Test(t, inBubble)
	default:
		synctest.Test(new(testing.T), inBubble)
	}
	return dir
}

// A probeHandler fails for some time of each minute.
type probeHandler struct {
	fake    *fakecri.Runtime
	latency time.Duration
}

func (h probeHandler) Probe(_ context.Context, t prober.Target) (prober.Outcome, error) {
	time.Sleep(h.latency / 2)
	if exec := t.Probe.Exec; t.Kind == prober.Liveness && exec != nil && exec.Command[0] == "dead" {
		return prober.Outcome{Result: runtime.ProbeFailure, Output: "dead"}, nil
	}
	if t.Kind == prober.Readiness && time.Now().Second()/20 == 1 {
		return prober.Outcome{Result: runtime.ProbeFailure, Output: "not ready"}, nil
	}
	return prober.Outcome{Result: runtime.ProbeSuccess}, nil
}

func pod(name string, containers ...v1.Container) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)},
		Spec:       v1.PodSpec{Containers: containers, RestartPolicy: v1.RestartPolicyAlways},
	}
	grace := int64(10)
	p.Spec.TerminationGracePeriodSeconds = &grace
	return p
}

func container(name, image string) v1.Container {
	return v1.Container{Name: name, Image: image, ImagePullPolicy: v1.PullIfNotPresent, Env: []v1.EnvVar{{Name: "PASSWORD", Value: "secret"}}, Command: []string{"run", "$(PASSWORD)"}}
}

func probed(c v1.Container) v1.Container {
	p := v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"check"}}}, PeriodSeconds: 10, TimeoutSeconds: 1, FailureThreshold: 2, SuccessThreshold: 1}
	c.ReadinessProbe, c.LivenessProbe = p.DeepCopy(), p.DeepCopy()
	return c
}

// deleted returns a pod whose deletion was requested.
func deleted(p *v1.Pod) *v1.Pod {
	p = p.DeepCopy()
	now := metav1.Now()
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &now, p.Spec.TerminationGracePeriodSeconds
	return p
}

// busy has pods that start, crash, are probed and are deleted, for 4 minutes.
func busy(n node) {
	web, crash, stubborn := pod("web", probed(container("main", "nginx")), container("side", "slow")), pod("crash", container("main", "crash")), pod("stubborn", container("main", "stubborn"))
	job := pod("job", container("main", "once"))
	job.Spec.RestartPolicy = v1.RestartPolicyNever
	job.Spec.InitContainers = []v1.Container{container("init", "once")}
	n.source.Set(web, crash)
	time.Sleep(20 * time.Second)
	n.source.Add(job, stubborn)
	time.Sleep(40 * time.Second)
	_ = n.fake.Exit("uid-web", "main", 3)
	time.Sleep(30 * time.Second)
	n.source.Add(deleted(stubborn))
	time.Sleep(30 * time.Second)
	n.source.Remove(stubborn.UID)
	n.source.Add(deleted(web))
	time.Sleep(time.Minute)
	n.source.Remove(web.UID)
	time.Sleep(time.Minute)
}

func open(t testing.TB, dir string) *replay.Recording {
	t.Helper()
	r, err := replay.Open(dir)
	require.NoError(t, err)
	return r
}
