package podworker_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// busy is a Handler that is at something.
type busy struct {
	silent
	since atomic.Int64 // nanoseconds
}

func (b *busy) Terminate(ctx context.Context, _ podworker.SyncRequest) error {
	b.since.Store(time.Now().UnixNano())
	<-ctx.Done()
	return ctx.Err()
}

func (b *busy) Doing(types.UID) (string, time.Time) { return "stop", time.Unix(0, b.since.Load()) }

// serving shows two containers that run and one that does not.
type serving struct{ observed }

func (serving) Get(uid types.UID) (*runtime.PodStatus, error) {
	return &runtime.PodStatus{
		UID: uid,
		Containers: []runtime.ContainerStatus{
			{Name: "web", State: runtime.ContainerRunning}, {Name: "init", State: runtime.ContainerExited}, {Name: "lost", State: runtime.ContainerUnknown},
		},
		Sandboxes: []runtime.SandboxStatus{{State: runtime.SandboxReady}},
	}, nil
}

func TestExplainSaysWhatStillRunsAndWhoAsked(t *testing.T) { // L-22
	synctest.Test(t, func(t *testing.T) {
		h := new(busy)
		w, err := podworker.New(podworker.Config{Handler: h, StatusCache: serving{}})
		require.NoError(t, err)
		stop := run(t, w)
		w.Update(newPod("web", 0), true)
		synctest.Wait()
		time.Sleep(10 * time.Second)
		done := w.Kill("web", podworker.KillOptions{GracePeriodSeconds: new(int64(7)), Evict: true,
			Ending: runtime.Termination{Failed: true, Reason: "Evicted", Message: "low on memory"}})
		time.Sleep(3 * time.Second)
		e, ok := w.Explain("web")
		require.True(t, ok)
		assert.Equal(t, "pod default/web (web) is terminating, for 3s. Next step: stop its containers (waiting 3s)."+
			" It was told to end 3s ago because the agent ends it (Evicted: low on memory), with a grace of 7 s, of which 4s are left."+
			" Still running: web, lost, sandbox. Waiting to hear of its end: 1.", e.String())
		now := time.Now()
		assert.Equal(t, podworker.Explanation{
			At: now, UID: "web", Namespace: "default", Name: "web",
			State: podworker.Terminating, Seen: now.Add(-13 * time.Second), Since: now.Add(-3 * time.Second),
			Wait: podworker.WaitCall, WaitSince: now.Add(-3 * time.Second),
			Call: "Terminate", CallSince: now.Add(-3 * time.Second), Step: "stop", StepSince: now.Add(-3 * time.Second),
			Containers: []podworker.ContainerSeen{{Name: "init", State: "exited"}, {Name: "lost", State: "unknown"}, {Name: "web", State: "running"}},
			Termination: &podworker.Termination{
				Cause: podworker.CauseKilled, Asked: now.Add(-3 * time.Second), Reason: "Evicted", Message: "low on memory",
				GracePeriodSeconds: new(int64(7)), Evicted: true, Waiters: 1, Running: []string{"web", "lost", "sandbox"},
			},
		}, e)

		text, err := json.Marshal(e)
		require.NoError(t, err)
		assert.Contains(t, string(text), `"state":"terminating"`)
		assert.NotContains(t, string(text), `"next"`, "what there is not is left out")
		var back podworker.Explanation
		require.NoError(t, json.Unmarshal(text, &back))
		assert.Equal(t, e.String(), back.String())
		stop()
		assert.Equal(t, podworker.Abandoned, <-done)
	})
	var s podworker.State
	require.EqualError(t, s.UnmarshalText([]byte("lost")), `podworker: "lost" is no state of a pod`)
	assert.Equal(t, "unknown", podworker.State(99).String())
}

func TestExplainSaysWhenTheNextCallIs(t *testing.T) { // pw-10, L-24
	synctest.Test(t, func(t *testing.T) {
		w, err := podworker.New(podworker.Config{Handler: silent{}, StatusCache: observed{}, Jitter: func(d time.Duration) time.Duration { return d }})
		require.NoError(t, err)
		stop := run(t, w)
		w.Update(newPod("web", 0), true)
		synctest.Wait()
		began := time.Now()
		time.Sleep(20 * time.Second)
		e, _ := w.Explain("web")
		assert.Equal(t, podworker.WaitResync, e.Wait)
		assert.Equal(t, began.Add(time.Minute), e.Next)
		assert.Equal(t, "pod default/web (web) is syncing, for 20s. Nothing is to be done; it is looked at again when something changes, or in 40s.", e.String())
		_, ok := w.Explain("nobody")
		assert.False(t, ok)
		stop()
	})
}
