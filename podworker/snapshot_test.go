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

// busy is a Handler whose call is in progress.
type busy struct {
	silent
	since atomic.Int64 // nanoseconds
}

func (b *busy) Terminate(ctx context.Context, _ podworker.SyncRequest) error {
	b.since.Store(time.Now().UnixNano())
	<-ctx.Done()
	return ctx.Err()
}

func (b *busy) Progress(types.UID) podworker.Progress {
	since := time.Unix(0, b.since.Load())
	return podworker.Progress{Step: "stop containers", Since: since, Err: "device busy", RetryAt: since.Add(5 * time.Second)}
}

// serving reports two running containers and one that is not running.
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

func TestASnapshotContainsTheStepAndTheTermination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(busy)
		w, err := podworker.New(podworker.Config{Handler: h, StatusCache: serving{}})
		require.NoError(t, err)
		stop := run(t, w)
		w.Update(newPod("web", 0), true)
		synctest.Wait()
		time.Sleep(10 * time.Second)
		done := w.Kill("web", podworker.KillOptions{GracePeriodSeconds: new(int64(7)), Evict: true,
			Termination: runtime.Termination{Failed: true, Reason: "Evicted", Message: "low on memory"}})
		time.Sleep(3 * time.Second)
		s, ok := w.Snapshot("web")
		require.True(t, ok)
		now := time.Now()
		assert.Equal(t, podworker.Snapshot{
			At: now, UID: "web", Namespace: "default", Name: "web",
			State: podworker.Terminating, Added: now.Add(-13 * time.Second), Since: now.Add(-3 * time.Second),
			Step: "stop containers", StepSince: now.Add(-3 * time.Second), Err: "device busy", Next: now.Add(2 * time.Second),
			Termination: &podworker.TerminationRequest{
				Cause: "killed", At: now.Add(-3 * time.Second), Reason: "Evicted", Message: "low on memory", GracePeriodSeconds: new(int64(7)),
			},
		}, s)

		text, err := json.Marshal(s)
		require.NoError(t, err)
		assert.Contains(t, string(text), `"state":"terminating"`)
		assert.NotContains(t, string(text), `"blockedBy"`, "zero values are omitted")
		var back podworker.Snapshot
		require.NoError(t, json.Unmarshal(text, &back))
		assert.Equal(t, s.State, back.State)
		assert.True(t, s.Next.Equal(back.Next))
		stop()
		assert.Equal(t, podworker.Abandoned, <-done)
	})
	var s podworker.State
	require.EqualError(t, s.UnmarshalText([]byte("lost")), `podworker: unknown state "lost"`)
	assert.Equal(t, "unknown", podworker.State(99).String())
}

func TestASnapshotOfAnIdlePodHasTheTimeOfTheNextSync(t *testing.T) { // pw-10
	synctest.Test(t, func(t *testing.T) {
		w, err := podworker.New(podworker.Config{Handler: silent{}, StatusCache: observed{}, Jitter: func(_ types.UID, d time.Duration) time.Duration { return d }})
		require.NoError(t, err)
		stop := run(t, w)
		w.Update(newPod("web", 0), true)
		synctest.Wait()
		began := time.Now()
		time.Sleep(20 * time.Second)
		s, _ := w.Snapshot("web")
		assert.Empty(t, s.Step)
		assert.Empty(t, s.Err)
		assert.Equal(t, began.Add(time.Minute), s.Next)
		_, ok := w.Snapshot("other")
		assert.False(t, ok)
		stop()
	})
}
