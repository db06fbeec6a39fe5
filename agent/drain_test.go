package agent_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

func TestDrainGivesUpOnARuntimeThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, agent.Config{})
		pod := newPod("web")
		pod.Spec.TerminationGracePeriodSeconds = new(int64(3600))
		n.source.Set(pod)
		time.Sleep(time.Minute)
		gone := errors.New("connection refused")
		n.runtime.Inject(func(c runtimetest.Call) (f runtimetest.Fault) {
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
		n.runtime.Inject(func(c runtimetest.Call) (f runtimetest.Fault) {
			if c.Method == "KillPod" && c.UID == pod.UID {
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
