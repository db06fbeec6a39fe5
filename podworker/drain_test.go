package podworker_test

import (
	"context"
	"errors"
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
	workers, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{list: func() []*runtime.Pod { return orphans }}})
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
		require.NoError(t, loop.Drain(t.Context(), nil))
		for _, s := range workers.Table().States() {
			assert.Equal(t, podworker.Finished, s.State, s.UID)
		}
		assert.Len(t, workers.Table().States(), 2, "they are still desired")
		require.NoError(t, loop.Drain(t.Context(), nil), "a second call has nothing to do")
		time.Sleep(time.Hour)
		h.mu.Lock()
		defer h.mu.Unlock()
		assert.Equal(t, "3cleanup", h.stage["web"])
		assert.Equal(t, "3cleanup", h.stage["job"])
	})
}

// A source that has not synced cannot veto the drain: it has been stopped and
// will not add the pod anymore.
func TestDrainTerminatesOrphans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(3)
		workers, err := podworker.New(podworker.Config{Handler: w, StatusCache: observed{list: w.list}})
		require.NoError(t, err)
		loop, stop := runLoop(t, podworker.LoopConfig{Workers: workers, Sources: []string{"api"}})
		defer stop()
		time.Sleep(time.Minute)
		require.Len(t, w.list(), 3, "their source has not synced")
		require.NoError(t, loop.Drain(t.Context(), nil))
		assert.Empty(t, w.list())
		synctest.Wait() // until the finished orphans are forgotten
		assert.Empty(t, workers.Table().States())
	})
}

// A pod that was removed and added again while it terminates would start over.
func TestDrainTerminatesPodsThatAreAboutToStartOver(t *testing.T) {
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
		require.NoError(t, loop.Drain(t.Context(), nil))
		assert.Equal(t, 1, h.syncs, "the second time it does not start")
		state, _ := workers.Table().State(pod.UID)
		assert.Equal(t, podworker.Finished, state)
	})
}

// A sluggish Handler takes ten seconds to stop a pod.
type sluggish struct {
	recorder
	syncs int
}

func (s *sluggish) Sync(context.Context, podworker.SyncRequest) (podworker.SyncResult, error) {
	s.syncs++
	return podworker.SyncResult{}, nil
}

func (s *sluggish) Terminate(ctx context.Context, _ podworker.SyncRequest) error {
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
		err := loop.Drain(ctx, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "drain: 1 pods left")

		began := time.Now()
		time.AfterFunc(time.Second, stop)
		assert.ErrorIs(t, loop.Drain(t.Context(), nil), podworker.ErrRunReturned)
		assert.Less(t, time.Since(began), 2*time.Second)
		synctest.Wait()
	})
}

// A runtime that is down and pods that never stop do not block Drain forever.
func TestDrainGivesUp(t *testing.T) {
	down := errors.New("container runtime is down")
	for name, tc := range map[string]struct {
		runtime func() error
		grace   int64
		after   time.Duration
		fails   string
	}{
		"a pod that does not stop": {nil, 5, 35 * time.Second, "podworker: drain: 1 pods left: none terminated in 35s, with a grace period of 5s"},
		"a runtime that is up":     {func() error { return nil }, 5, 35 * time.Second, "none terminated"},
		"a runtime that is down":   {func() error { return down }, 3600, 30 * time.Second, "podworker: drain: 1 pods left: container runtime is down"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				loop, workers, stop := drainable(t, immortal{})
				pod := newPod("web", 0)
				pod.Spec.TerminationGracePeriodSeconds = &tc.grace
				loop.AddPods([]*v1.Pod{pod})
				synctest.Wait()
				began := time.Now()
				err := loop.Drain(t.Context(), tc.runtime)
				require.ErrorContains(t, err, tc.fails)
				assert.InDelta(t, tc.after, time.Since(began), float64(time.Second))
				state, _ := workers.Table().State(pod.UID)
				assert.Equal(t, podworker.Terminating, state, "it continues to terminate")
				stop()
			})
		})
	}
}

// immortal is a Handler whose pods never stop.
type immortal struct{ silent }

func (immortal) Terminate(ctx context.Context, _ podworker.SyncRequest) error {
	<-ctx.Done()
	return ctx.Err()
}
