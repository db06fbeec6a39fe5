package podworker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/podworker"
)

// noisy is a Handler under which a few pods queue themselves continuously.
type noisy struct {
	silent
	workers *podworker.Workers

	mu    sync.Mutex
	calls map[types.UID]int
	total int
}

func (n *noisy) Sync(_ context.Context, w podworker.SyncRequest) (podworker.SyncResult, error) {
	time.Sleep(time.Millisecond)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls[w.UID]++
	n.total++
	n.workers.Sync(w.UID) // due again at once
	return podworker.SyncResult{}, nil
}

// stuck is a Handler whose Syncs return when their context is done, except those of
// one pod.
type stuck struct {
	silent
	in, most, served atomic.Int64
}

func (h *stuck) Sync(ctx context.Context, w podworker.SyncRequest) (podworker.SyncResult, error) {
	h.most.Store(max(h.most.Load(), h.in.Add(1)))
	defer h.in.Add(-1)
	if w.UID == "well" {
		h.served.Add(1)
		return podworker.SyncResult{}, nil
	}
	<-ctx.Done()
	return podworker.SyncResult{}, ctx.Err()
}

func TestAThousandHangingPodsDoNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, parallel = 1000, 10
		h := new(stuck)
		w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{}, Parallel: parallel, Slow: time.Second})
		require.NoError(t, err)
		stop := run(t, w)
		synctest.Wait()
		goroutines := goruntime.NumGoroutine()
		for i := range n {
			w.Update(newPod(fmt.Sprint("pod-", i), 0), true)
		}
		w.Update(newPod("well", 0), true)
		time.Sleep(time.Second / 2)
		assert.EqualValues(t, parallel, h.in.Load(), "so many begin at once")
		time.Sleep(n / parallel * time.Second)
		assert.EqualValues(t, 1, h.served.Load(), "those before it have had their time")

		// Each has one call, however many updates it gets.
		for range 3 {
			for i := range n {
				w.Sync(types.UID(fmt.Sprint("pod-", i)))
			}
			w.Sync("well")
			time.Sleep(time.Second)
		}
		assert.EqualValues(t, 4, h.served.Load(), "at once")
		assert.LessOrEqual(t, h.most.Load(), int64(n+1))
		assert.LessOrEqual(t, goruntime.NumGoroutine()-goroutines, n+1)

		// Their cancellation reaches each of them, and none remains.
		for i := range n {
			w.Remove(types.UID(fmt.Sprint("pod-", i)))
		}
		time.Sleep(n / parallel * time.Second)
		assert.Zero(t, h.in.Load())
		assert.LessOrEqual(t, goruntime.NumGoroutine()-goroutines, 1)
		stop()
	})
}

func TestSlotsAreAssignedFairly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &noisy{calls: map[types.UID]int{}}
		w, err := podworker.New(podworker.Config{Handler: n, StatusCache: observed{}, Parallel: 4})
		require.NoError(t, err)
		n.workers = w
		stop := run(t, w)
		for i := range 100 {
			w.Update(newPod(fmt.Sprint("pod-", i), 0), true)
		}
		time.Sleep(10 * time.Second)
		stop()
		least, most := n.total, 0
		for _, calls := range n.calls {
			least, most = min(least, calls), max(most, calls)
		}
		require.Len(t, n.calls, 100)
		assert.Greater(t, n.total, 30_000, "four at a time")
		assert.LessOrEqual(t, most-least, 2, "100 pods that are always due have as many calls each")
	})
}

// hanging is a Handler some of whose calls return only when canceled, and which counts
// those that do.
type hanging struct {
	recorder
	hang func(types.UID) bool
}

func (h *hanging) Sync(ctx context.Context, w podworker.SyncRequest) (podworker.SyncResult, error) {
	if h.hang(w.UID) {
		<-ctx.Done()
		return podworker.SyncResult{}, ctx.Err()
	}
	return h.recorder.Sync(ctx, w)
}

func TestHangingCallsDelayOnlyTheirPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{recorder: recorder{work: func() time.Duration { return time.Second }}, hang: func(uid types.UID) bool { return uid < "pod-2" }}
		w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{}, Parallel: 4})
		require.NoError(t, err)
		stop := run(t, w)
		for i := range 1000 {
			w.Update(newPod(fmt.Sprintf("pod-%03d", i), 0), true)
		}
		// 200 that hang, four at a time, each for 10 s; 800 that take a second.
		time.Sleep(200*10/4*time.Second + 800/4*time.Second + time.Second)
		h.mu.Lock()
		assert.Len(t, h.stage, 800)
		assert.LessOrEqual(t, h.most, 4)
		h.mu.Unlock()
		stop()
	})
	t.Run("unless they are to count until they return", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := &hanging{hang: func(uid types.UID) bool { return uid == "a" }}
			w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{}, Parallel: 1, Slow: -1})
			require.NoError(t, err)
			stop := run(t, w)
			w.Update(newPod("a", 0), true)
			w.Update(newPod("b", 0), true)
			time.Sleep(time.Hour)
			h.mu.Lock()
			assert.Empty(t, h.stage)
			h.mu.Unlock()
			stop()
		})
	})
}

func TestEveryGoroutineEnds(t *testing.T) { // inv-17: a bubble waits for all of its goroutines, else the test fails
	seed := seedrun.Seed(t)
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(seed, 0))
		h := &recorder{work: func() time.Duration { return time.Second }}
		w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{}, Parallel: 3})
		require.NoError(t, err)
		stop := run(t, w)
		for i := range 50 {
			w.Update(newPod(fmt.Sprint("pod-", i), 0), true)
			time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
			if i%3 == 0 {
				w.Remove(types.UID(fmt.Sprint("pod-", rng.IntN(i+1))))
			}
		}
		stop()
		w.Sync("pod-1") // too late, and harmless
		w.Update(newPod("late", 0), true)
	})
}
