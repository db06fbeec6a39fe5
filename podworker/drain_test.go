package podworker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

func drainable(t *testing.T, h podworker.Handler, orphans ...*runtime.Pod) (loop *podworker.Loop, workers *podworker.Workers, stop func()) {
	workers, err := podworker.New(podworker.Config{Handler: h, Statuses: observed{}, Pods: func() []*runtime.Pod { return orphans }})
	require.NoError(t, err)
	loop, stop = runLoop(t, podworker.LoopConfig{Workers: workers, Sources: []string{"api"}})
	return loop, workers, stop
}

func TestDrainReturnsWhenEveryPodIsCleanedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &recorder{}
		loop, workers, stop := drainable(t, h)
		defer stop()
		loop.AddPods([]*v1.Pod{newPod("web", 0), newPod("job", 0)})
		synctest.Wait()
		require.NoError(t, loop.Drain(t.Context()))
		for _, s := range workers.States() {
			assert.Equal(t, podworker.Finished, s.State, s.UID)
		}
		assert.Len(t, workers.States(), 2, "they are still desired")
		require.NoError(t, loop.Drain(t.Context()), "a second call has nothing to do")
		time.Sleep(time.Hour)
		h.mu.Lock()
		defer h.mu.Unlock()
		assert.Equal(t, "3cleanup", h.stage["web"])
		assert.Equal(t, "3cleanup", h.stage["job"])
	})
}

// A source that has not synced cannot veto the drain: it has been stopped and
// will not add the pod anymore.
func TestDrainTerminatesPodsThatOnlyTheRuntimeKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(3)
		workers, err := podworker.New(podworker.Config{Handler: w, Statuses: observed{}, Pods: w.list})
		require.NoError(t, err)
		loop, stop := runLoop(t, podworker.LoopConfig{Workers: workers, Sources: []string{"api"}})
		defer stop()
		time.Sleep(time.Minute)
		require.Len(t, w.list(), 3, "their source has not synced")
		require.NoError(t, loop.Drain(t.Context()))
		assert.Empty(t, w.list())
		assert.Empty(t, workers.States())
	})
}

// A pod that was removed and added again while it terminates would start over.
func TestDrainEndsPodsThatAreAboutToStartOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &sluggish{}
		loop, workers, stop := drainable(t, h)
		defer stop()
		pod := newPod("web", 0)
		loop.AddPods([]*v1.Pod{pod})
		synctest.Wait()
		loop.RemovePods([]*v1.Pod{pod})
		synctest.Wait()
		loop.AddPods([]*v1.Pod{pod})
		require.NoError(t, loop.Drain(t.Context()))
		assert.Equal(t, 1, h.syncs, "the second time it does not start")
		state, _ := workers.Known(pod.UID)
		assert.Equal(t, podworker.Finished, state)
	})
}

// A sluggish Handler takes ten seconds to stop a pod.
type sluggish struct {
	recorder
	syncs int
}

func (s *sluggish) Sync(context.Context, podworker.Work) (podworker.Next, error) {
	s.syncs++
	return podworker.Next{}, nil
}

func (s *sluggish) Terminate(ctx context.Context, _ podworker.Work) error {
	select {
	case <-time.After(10 * time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestDrainReportsHowManyPodsAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop, _, stop := drainable(t, &sluggish{})
		loop.AddPods([]*v1.Pod{newPod("web", 0)})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := loop.Drain(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "drain: 1 pods left")

		began := time.Now()
		time.AfterFunc(time.Second, stop)
		assert.ErrorContains(t, loop.Drain(t.Context()), "drain: 1 pods left: Run has returned")
		assert.Less(t, time.Since(began), 2*time.Second)
		synctest.Wait()
	})
}
