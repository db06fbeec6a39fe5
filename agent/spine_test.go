package agent_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podsource/manifest"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
)

// A spine is an agent over a runtime in memory, with its parts at hand.
type spine struct {
	*agent.Agent
	runtime *runtimetest.Runtime
	sink    *status.MemorySink
	changes *pleg.Generator
	health  *agent.RuntimeHealth
	sync    podsource.Sink // the sync loop
	stop    func() error
}

// newSpine starts an agent over rt that runs the pods of source.
func newSpine(t testing.TB, rt *runtimetest.Runtime, source *podsource.Memory, hooks podworker.Hooks, sinks ...status.Sink) *spine {
	t.Helper()
	return newSpineOf(t, rt, map[string]podsource.PodSource{"memory": source}, hooks, sinks...)
}

// newSpineOf is newSpine with other sources, whose pods are static except those of the API.
func newSpineOf(t testing.TB, rt *runtimetest.Runtime, sources map[string]podsource.PodSource, hooks podworker.Hooks, sinks ...status.Sink) *spine {
	t.Helper()
	s := &spine{runtime: rt, sink: new(status.MemorySink)}
	static := slices.DeleteFunc(slices.Sorted(maps.Keys(sources)), func(name string) bool { return name == podsource.APISource })
	var err error
	s.Agent, err = agent.New(agent.Config{
		Runtime: rt, Sources: sources, Static: static, Sink: status.Tee(append(sinks, s.sink)...),
		Adjust: []compose.Adjustment{
			compose.Adjust(func(c *podworker.Config) {
				c.Hooks = hooks
				c.Jitter = func(_ types.UID, d time.Duration) time.Duration { return d } // scenarios have exact times
			}),
			compose.Adjust(func(c *podsource.MergeConfig) { s.sync = c.Sink }),
		},
	})
	require.NoError(t, err)
	s.changes, s.health = s.PLEG(), s.Health()
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	s.stop = func() error {
		cancel()
		return <-ran
	}
	return s
}

// newTestPod returns a pod of these containers, whose images determine the behavior of the
// runtime.
func newTestPod(name string, policy v1.RestartPolicy, images ...string) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name)},
		Spec:       v1.PodSpec{RestartPolicy: policy},
	}
	for i, image := range images {
		c := v1.Container{Name: fmt.Sprint("c", i), Image: image}
		if strings.HasPrefix(image, "init-") {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		} else {
			pod.Spec.Containers = append(pod.Spec.Containers, c)
		}
	}
	return manifest.Default(pod)
}

// newNode returns a runtime in which the name of an image selects its behavior.
func newNode() *runtimetest.Runtime {
	rt := &runtimetest.Runtime{Backoff: 10 * time.Second}
	rt.Behave("init-ok", fake.Behavior{Exit: &fake.Exit{After: time.Second}})
	rt.Behave("done", fake.Behavior{Exit: &fake.Exit{After: 2 * time.Second}})
	rt.Behave("fails", fake.Behavior{Exit: &fake.Exit{After: 2 * time.Second, Code: 3}})
	rt.Behave("stubborn", fake.Behavior{IgnoreTERM: true})
	return rt
}

func (s *spine) phase(name string) v1.PodPhase {
	st, _ := s.sink.Status(types.UID("uid-" + name))
	return st.Phase
}

func TestSpineTakesPodsFromSourceToSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := new(podsource.Memory)
		s := newSpine(t, newNode(), source, podworker.Hooks{})
		source.Set(
			newTestPod("web", v1.RestartPolicyAlways, "init-ok", "init-ok", "serves"),
			newTestPod("job", v1.RestartPolicyNever, "done"),
			newTestPod("broken", v1.RestartPolicyNever, "done", "fails"),
			newTestPod("crash", v1.RestartPolicyAlways, "fails", "serves"),
			newTestPod("stubborn", v1.RestartPolicyAlways, "stubborn"),
		)
		time.Sleep(time.Second / 2)
		assert.Equal(t, v1.PodPending, s.phase("web"), "init containers come first")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		for name, want := range map[string]v1.PodPhase{
			"web": v1.PodRunning, "job": v1.PodSucceeded, "broken": v1.PodFailed, "crash": v1.PodRunning, "stubborn": v1.PodRunning,
		} {
			assert.Equal(t, want, s.phase(name), name)
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		crash, _ := s.sink.Status("uid-crash")
		restarts := crash.ContainerStatuses[0].RestartCount
		assert.InDelta(t, 24*3600/302, restarts, 20, "after 10, 20, 40 … 300 s")
		web, _ := s.sink.Status("uid-web")
		assert.Zero(t, web.ContainerStatuses[0].RestartCount)

		source.Set(newTestPod("web", v1.RestartPolicyAlways, "init-ok", "init-ok", "serves"))
		time.Sleep(29 * time.Second)
		synctest.Wait()
		assert.True(t, s.running("uid-stubborn"), "within its grace")
		time.Sleep(6 * time.Second)
		synctest.Wait()
		pods, err := s.runtime.Pods(t.Context())
		require.NoError(t, err)
		require.Len(t, pods, 1, "a removed pod leaves nothing behind")
		assert.EqualValues(t, "uid-web", pods[0].UID)
		assert.Len(t, s.Table().States(), 1)
		require.NoError(t, s.stop())
	})
}

func (s *spine) running(uid types.UID) bool {
	st, err := s.changes.Get(uid)
	return err == nil && st.Running()
}

// twins returns duplicates, which must never exist: two running instances of one
// container.
func twins(t *testing.T, rt *runtimetest.Runtime) (found []string) {
	t.Helper()
	pods, err := rt.Pods(t.Context())
	if err != nil {
		return nil // a fault that the test injected
	}
	for _, pod := range pods {
		count := map[string]int{}
		for _, c := range pod.Containers {
			if c.State == runtime.ContainerRunning {
				if count[c.Name]++; count[c.Name] == 2 {
					found = append(found, pod.Name+"/"+c.Name)
				}
			}
		}
	}
	return found
}

func TestSpineWithARuntimeThatFailsHalfOfTheTime(t *testing.T) {
	seed := seedrun.Seed(t)
	synctest.Test(t, func(t *testing.T) {
		rt, source := newNode(), new(podsource.Memory)
		var mu sync.Mutex
		rng := rand.New(rand.NewPCG(seed, 0))
		rt.Inject(func(fake.Call) fake.Fault {
			mu.Lock()
			defer mu.Unlock()
			f := fake.Fault{Delay: time.Duration(rng.IntN(500)) * time.Millisecond}
			if rng.IntN(2) == 0 {
				f.Err = errors.New("the runtime has a bad day")
				f.Lost = rng.IntN(2) == 0 // the call took effect, and returns an error
			}
			return f
		})
		s := newSpine(t, rt, source, podworker.Hooks{})
		var pods []*v1.Pod
		for i := range 20 {
			pods = append(pods, newTestPod(fmt.Sprint("web-", i), v1.RestartPolicyAlways, "init-ok", "serves", "serves"))
		}
		source.Set(pods...)
		for range 600 {
			time.Sleep(time.Second)
			require.Empty(t, twins(t, rt), "nothing is started twice")
		}
		synctest.Wait()
		for _, pod := range pods {
			st, _ := s.sink.Status(pod.UID)
			assert.Equal(t, v1.PodRunning, st.Phase, pod.Name)
			for _, c := range st.ContainerStatuses {
				assert.Zero(t, c.RestartCount, "%s/%s", pod.Name, c.Name)
			}
		}
		source.Set()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		rt.Inject(nil)
		time.Sleep(2 * time.Minute)
		left, err := rt.Pods(t.Context())
		require.NoError(t, err)
		assert.Empty(t, left)
		require.NoError(t, s.stop())
	})
}

func TestSpineReportsAHangingRuntimeAndContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, source := newNode(), new(podsource.Memory)
		s := newSpine(t, rt, source, podworker.Hooks{})
		source.Set(newTestPod("web", v1.RestartPolicyAlways, "serves"))
		time.Sleep(10 * time.Second)
		require.NoError(t, s.health.Runtime())
		require.NoError(t, s.changes.Healthy())

		rt.Inject(func(fake.Call) fake.Fault { // as over a socket: calls time out
			return fake.Fault{Delay: 2 * time.Minute, Err: errors.New("deadline exceeded")}
		})
		source.Set(newTestPod("web", v1.RestartPolicyAlways, "serves"), newTestPod("late", v1.RestartPolicyAlways, "serves"))
		time.Sleep(time.Minute)
		assert.ErrorContains(t, s.health.Runtime(), "container runtime is down")
		time.Sleep(3 * time.Minute)
		assert.ErrorContains(t, s.changes.Healthy(), "pleg was last seen active")

		rt.Inject(nil)
		time.Sleep(3 * time.Minute) // hanging calls have to time out first
		synctest.Wait()
		assert.NoError(t, s.health.Runtime())
		assert.NoError(t, s.changes.Healthy())
		assert.Equal(t, v1.PodRunning, s.phase("late"), "it was not forgotten")
		web, _ := s.sink.Status("uid-web")
		assert.Zero(t, web.ContainerStatuses[0].RestartCount)
		assert.Empty(t, twins(t, rt))
		require.NoError(t, s.stop())
	})
}

func TestSpineOverSeveralAgents(t *testing.T) {
	seed := seedrun.Seed(t)
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(seed, 0))
		rt := newNode()
		pods := []*v1.Pod{
			newTestPod("web", v1.RestartPolicyAlways, "init-ok", "serves"),
			newTestPod("crash", v1.RestartPolicyAlways, "fails"),
			newTestPod("job", v1.RestartPolicyNever, "done"),
		}
		var id string
		restarts := int32(0)
		for range 20 {
			source := new(podsource.Memory)
			source.Set(pods...)
			s := newSpine(t, rt, source, podworker.Hooks{})
			time.Sleep(time.Duration(rng.IntN(60_000)) * time.Millisecond)
			require.NoError(t, s.stop()) // its containers go on
			time.Sleep(time.Duration(rng.IntN(10_000)) * time.Millisecond)
			require.Empty(t, twins(t, rt))
			st, err := rt.PodStatus(t.Context(), "uid-web")
			require.NoError(t, err)
			if c := st.Container("c1"); c != nil {
				if id == "" {
					id = c.ID
				}
				require.Equal(t, id, c.ID, "a running container is not restarted")
			}
			st, err = rt.PodStatus(t.Context(), "uid-crash")
			require.NoError(t, err)
			if c := st.Container("c0"); c != nil {
				require.GreaterOrEqual(t, c.RestartCount, restarts, "counts go on")
				restarts = c.RestartCount
			}
			st, err = rt.PodStatus(t.Context(), "uid-job")
			require.NoError(t, err)
			require.LessOrEqual(t, len(st.Containers), 1, "a completed container does not run again")
		}
		assert.NotEmpty(t, id)
	})
}

// A static pod of a manifest that was changed while no agent ran is replaced by the
// new one, although the API server's pods have not been received; pods that may be the
// API server's keep running (#112814).
func TestSpineReplacesStaticPodsWhileTheAPIServerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, files := newNode(), new(podsource.Memory)
		start := func(api podsource.PodSource) (stop func()) {
			s := newSpineOf(t, rt, map[string]podsource.PodSource{podsource.APISource: api, podsource.FileSource: files}, podworker.Hooks{})
			return func() { require.NoError(t, s.stop()) }
		}
		runs := func() (uids []types.UID) {
			pods, err := rt.Pods(t.Context())
			require.NoError(t, err)
			for _, pod := range pods {
				for _, c := range pod.Containers {
					if c.State == runtime.ContainerRunning {
						uids = append(uids, pod.UID)
					}
				}
			}
			return uids
		}
		manifest := func(uid types.UID) *v1.Pod {
			pod := newTestPod("web", v1.RestartPolicyAlways, "serves")
			pod.UID = uid
			return pod
		}

		files.Set(manifest("old"))
		api := new(podsource.Memory)
		api.Set(newTestPod("paid", v1.RestartPolicyAlways, "serves"))
		stop := start(api)
		time.Sleep(5 * time.Second)
		assert.ElementsMatch(t, []types.UID{"old", "uid-paid"}, runs())
		stop()

		files.Set(manifest("new"))
		away := podsource.Func(func(ctx context.Context, _ func([]*v1.Pod)) error {
			<-ctx.Done()
			return nil
		})
		stop = start(away)
		time.Sleep(time.Minute)
		assert.ElementsMatch(t, []types.UID{"new", "uid-paid"}, runs())
		stop()
	})
}
