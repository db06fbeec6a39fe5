package agent_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
)

func TestDrainGivesUpOnARuntimeThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, agent.Config{})
		pod := newPod("web")
		pod.Spec.TerminationGracePeriodSeconds = new(int64(3600))
		n.source.Set(pod)
		time.Sleep(time.Minute)
		gone := errors.New("connection refused")
		n.runtime.Inject(func(c fake.Call) (f fake.Fault) {
			if c.Method != "Pods" { // else listing fails, before any pod is terminated
				f.Err = gone
			}
			return f
		})
		began := time.Now()
		err := n.Drain(t.Context())
		require.ErrorIs(t, err, gone)
		assert.ErrorContains(t, err, "agent: drain: podworker: drain: 1 pods left: container runtime is down: last response ")
		assert.InDelta(t, time.Minute, time.Since(began), float64(10*time.Second), "30 s until it counts as down, and 30 s more")
		n.runtime.Inject(nil)
	})
}

func TestDrainGivesUpOnAPodThatDoesNotStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, agent.Config{})
		pod := newPod("web")
		pod.Spec.TerminationGracePeriodSeconds = new(int64(5))
		n.source.Set(pod, newPod("db"))
		synctest.Wait()
		n.runtime.Inject(func(c fake.Call) (f fake.Fault) {
			if c.Method == "KillPod" && c.Pod == pod.UID {
				f.Err = errors.New("device busy")
			}
			return f
		})
		began := time.Now()
		err := n.Drain(t.Context())
		require.ErrorContains(t, err, "1 pods left: none terminated in 35s, with a grace period of 5s")
		assert.Less(t, time.Since(began), 2*time.Minute)
		assert.Equal(t, []string{"web"}, n.runs(t), "the other pod has terminated")
	})
}

// A pod that a source specifies just now is terminated with its own grace period, not
// left to the next agent.
func TestDrainWaitsForSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := podsource.Func(func(ctx context.Context, set func([]*v1.Pod)) error {
			select {
			case <-time.After(3 * time.Second):
				set([]*v1.Pod{newPod("web")})
			case <-ctx.Done():
			}
			<-ctx.Done()
			return nil
		})
		n := start(t, agent.Config{Sources: map[string]podsource.PodSource{podsource.APISource: slow}})
		began := time.Now()
		require.NoError(t, n.Drain(t.Context()))
		assert.GreaterOrEqual(t, time.Since(began), 3*time.Second)
		assert.Less(t, time.Since(began), 5*time.Second)
		assert.NotEmpty(t, n.phase("web"))
		assert.Empty(t, n.runs(t))
	})
}

// Pods of an earlier agent are terminated although the source that would specify
// them cannot be reached.
func TestDrainNeedsNoSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, agent.Config{})
		n.source.Set(newPod("web"))
		synctest.Wait()
		require.NoError(t, n.stop())

		away := podsource.Func(func(ctx context.Context, _ func([]*v1.Pod)) error { <-ctx.Done(); return nil })
		next := start(t, agent.Config{Runtime: n.runtime, Sources: map[string]podsource.PodSource{podsource.APISource: away}})
		time.Sleep(time.Minute)
		require.Equal(t, []string{"web"}, next.runs(t))
		require.NoError(t, next.Drain(t.Context()))
		assert.Empty(t, next.runs(t))
	})
}

func TestDrainWaitsForRunAndForTheRuntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := new(runtimetest.Runtime)
		first := start(t, agent.Config{Runtime: rt})
		first.source.Set(newPod("web"))
		synctest.Wait()
		require.NoError(t, first.stop())

		rt.Inject(func(c fake.Call) (f fake.Fault) {
			if c.Method == "Pods" {
				f.Err = errors.New("not now")
			}
			return f
		})
		sink := new(status.MemorySink)
		a, err := agent.New(agent.Config{Runtime: rt, Sink: sink, Sources: map[string]podsource.PodSource{"api": new(podsource.Memory)}})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		assert.ErrorContains(t, a.Drain(ctx), "agent: drain: wait for Run: context deadline exceeded")

		running, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- a.Run(running) }()
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		assert.EqualError(t, a.Drain(ctx), "agent: drain: at least 0 pods left: list the pods of the runtime: no success within 30s: pleg: list pods: not now")
		short, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		require.ErrorIs(t, a.Drain(short), context.DeadlineExceeded)

		time.AfterFunc(10*time.Second, func() { rt.Inject(nil) })
		require.NoError(t, a.Drain(t.Context()))
		pods, err := rt.Pods(t.Context())
		require.NoError(t, err)
		for _, pod := range pods {
			for _, c := range pod.Containers {
				assert.NotEqual(t, runtime.ContainerRunning, c.State, pod.Name)
			}
		}
		stop()
		require.NoError(t, <-ran)
	})
}

// A refusing sink rejects statuses until it is set to accept them.
type refusing struct {
	mu     sync.Mutex
	takes  bool
	phases []v1.PodPhase
}

func (s *refusing) UpdatePodStatus(_ context.Context, _ *v1.Pod, st v1.PodStatus) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.takes {
		return errors.New("away")
	}
	s.phases = append(s.phases, st.Phase)
	return nil
}
func (*refusing) DeletePod(context.Context, *v1.Pod) error { return nil }

func TestDrainReportsStatusesThatAreNotDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := new(refusing)
		n := start(t, agent.Config{Sink: sink})
		n.source.Set(newPod("web"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		assert.ErrorContains(t, n.Drain(ctx), "deliver the last statuses")
		assert.Empty(t, n.runs(t))
		sink.mu.Lock()
		sink.takes = true
		sink.mu.Unlock()
		require.NoError(t, n.Drain(t.Context()))
		assert.Equal(t, v1.PodFailed, sink.phases[len(sink.phases)-1])
	})
}

func TestDrainFailsIfTheAgentStopsMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := new(runtimetest.Runtime)
		rt.Behave("web", fake.Behavior{IgnoreTERM: true})
		n := start(t, agent.Config{Runtime: rt})
		n.source.Set(newPod("web"))
		synctest.Wait()
		time.AfterFunc(time.Second, func() { _ = n.stop() })
		assert.ErrorIs(t, n.Drain(t.Context()), podworker.ErrRunReturned)
	})
}
