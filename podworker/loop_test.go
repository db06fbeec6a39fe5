package podworker_test

import (
	"context"
	"errors"
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

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// A collectionRecorder is a GarbageCollector that records the pods whose containers it may remove.
type collectionRecorder struct {
	uids []types.UID

	mu     sync.Mutex
	passes int
	freed  map[types.UID]bool
	policy runtime.GCPolicy
	fail   error
}

func (r *collectionRecorder) CollectGarbage(_ context.Context, policy runtime.GCPolicy) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passes++
	r.policy, r.freed = policy, map[types.UID]bool{}
	for _, uid := range r.uids {
		r.freed[uid] = !policy.Keep(uid)
	}
	return r.fail
}

// setError sets the error of further calls, and returns the previous one.
func (r *collectionRecorder) setError(fail error) (before error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, r.fail = r.fail, fail
	return before
}

// last returns the number of passes, and whether the last one might free uid.
func (r *collectionRecorder) last(uid types.UID) (passes int, freed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.passes, r.freed[uid]
}

func runLoop(t *testing.T, cfg podworker.LoopConfig) (loop *podworker.Loop, stop func()) {
	loop, err := podworker.NewLoop(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error)
	go func() { ran <- loop.Run(ctx) }()
	return loop, func() {
		cancel()
		require.NoError(t, <-ran)
	}
}

func TestOrphansAreKeptUntilEverySourceHasSynced(t *testing.T) { // sl-8
	synctest.Test(t, func(t *testing.T) {
		h, garbage := &recorder{}, &collectionRecorder{uids: []types.UID{"lost"}}
		lost := &runtime.Pod{UID: "lost", Containers: []runtime.Container{{State: runtime.ContainerRunning}}}
		w, err := podworker.New(podworker.Config{
			Handler: h, StatusCache: observed{list: func() []*runtime.Pod { return []*runtime.Pod{lost} }},
		})
		require.NoError(t, err)
		loop, stop := runLoop(t, podworker.LoopConfig{Workers: w, Sources: []string{"file", "api"}, Garbage: garbage})
		loop.SourceSynced("file")
		loop.PodChanged("lost")
		time.Sleep(61 * time.Second)
		synctest.Wait()
		h.mu.Lock()
		assert.Empty(t, h.stage, "sl-13")
		h.mu.Unlock()
		_, freed := garbage.last("lost")
		assert.False(t, freed)
		assert.False(t, w.Table().Synced())

		loop.SourceSynced("api")
		time.Sleep(61 * time.Second)
		synctest.Wait()
		_, freed = garbage.last("lost")
		assert.True(t, freed, "rt-129")
		stop()
		assert.Equal(t, 1, garbage.policy.MaxPerContainer)
		assert.Equal(t, "2terminate", h.stage["lost"], "sl-56")
		assert.Zero(t, h.grace["lost"], "the runtime's record is used: lq-33")
	})
}

// While everything runs there is nothing to collect, but what other programs leave behind.
func TestAQuietNodeIsCollectedEveryFifthPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := &runtime.Pod{
			UID: "web", Containers: []runtime.Container{{State: runtime.ContainerRunning}}, Sandboxes: []runtime.Sandbox{{State: runtime.SandboxReady}},
		}
		var listed atomic.Pointer[[]*runtime.Pod]
		listed.Store(&[]*runtime.Pod{web})
		garbage := &collectionRecorder{}
		w, err := podworker.New(podworker.Config{Handler: &recorder{}, StatusCache: observed{list: func() []*runtime.Pod { return *listed.Load() }}})
		require.NoError(t, err)
		loop, stop := runLoop(t, podworker.LoopConfig{Workers: w, Garbage: garbage})
		loop.AddPods([]*v1.Pod{newPod("web", 0)})
		passesIn := func(d time.Duration) int {
			before, _ := garbage.last("web")
			time.Sleep(d)
			synctest.Wait()
			after, _ := garbage.last("web")
			return after - before
		}
		assert.Equal(t, 1, passesIn(61*time.Second), "the first period")
		assert.Equal(t, 4, passesIn(20*time.Minute))
		for name, dead := range map[string]*runtime.Pod{
			"exited":    {UID: "web", Containers: []runtime.Container{{State: runtime.ContainerExited}}},
			"sandbox":   {UID: "web", Sandboxes: []runtime.Sandbox{{State: runtime.SandboxNotReady}}},
			"no source": {UID: "lost", Containers: []runtime.Container{{State: runtime.ContainerRunning}}},
		} {
			listed.Store(&[]*runtime.Pod{web, dead})
			assert.Equal(t, 20, passesIn(20*time.Minute), name)
		}
		listed.Store(&[]*runtime.Pod{web})
		assert.Equal(t, 1, passesIn(4*time.Minute), "once more, for what the last one made removable")
		listed.Store(new([]*runtime.Pod))
		assert.Equal(t, 20, passesIn(20*time.Minute), "no pods are known")
		listed.Store(&[]*runtime.Pod{web})
		require.NoError(t, garbage.setError(errors.New("unavailable")))
		passesIn(10 * time.Minute)
		require.Error(t, garbage.setError(nil))
		assert.GreaterOrEqual(t, passesIn(61*time.Second), 1, "what has failed is tried again")
		loop.RemovePods([]*v1.Pod{newPod("web", 0)})
		assert.GreaterOrEqual(t, passesIn(time.Second), 1, "at once")
		stop()
	})
}

func TestDeadContainersAreCollectedWhenAPodIsForgotten(t *testing.T) { // pw-57, sl-10, sl-60
	synctest.Test(t, func(t *testing.T) {
		garbage := &collectionRecorder{uids: []types.UID{"web", "job"}}
		w, err := podworker.New(podworker.Config{Handler: &recorder{}, StatusCache: observed{}})
		require.NoError(t, err)
		loop, stop := runLoop(t, podworker.LoopConfig{Workers: w, Garbage: garbage})
		web, job := newPod("web", 0), newPod("job", 0)
		loop.AddPods([]*v1.Pod{web, job})
		synctest.Wait()
		passes, _ := garbage.last("web")
		assert.Zero(t, passes)
		loop.RemovePods([]*v1.Pod{web})
		synctest.Wait()
		passes, freed := garbage.last("web")
		assert.Equal(t, 1, passes)
		assert.True(t, freed)
		_, freed = garbage.last("job")
		assert.False(t, freed)

		w.Kill("job", podworker.KillOptions{Evict: true})
		time.Sleep(time.Second)
		synctest.Wait() // cg-10: at once
		_, freed = garbage.last("job")
		assert.True(t, freed, "an evicted pod's containers may go while its object stays")
		assert.Len(t, w.Table().Desired(), 1)
		stop()
	})
}

// Garbage collection kills processes in cgroups, and releases devices and CPUs: it
// must not do so while the pod is stopping.
func TestAnEvictedPodKeepsItsResourcesUntilItHasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		garbage := &collectionRecorder{uids: []types.UID{"job"}}
		h := newWard(0)
		h.stop = 90 * time.Second
		w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{}})
		require.NoError(t, err)
		loop, stop := runLoop(t, podworker.LoopConfig{Workers: w, Garbage: garbage})
		loop.AddPods([]*v1.Pod{newPod("job", 0)})
		synctest.Wait()
		w.Kill("job", podworker.KillOptions{Evict: true, GracePeriodSeconds: new(int64(120))})
		time.Sleep(61 * time.Second)
		synctest.Wait()
		passes, freed := garbage.last("job")
		assert.Positive(t, passes)
		assert.False(t, freed, "it is terminating")
		assert.True(t, w.Table().Keep("job"))
		time.Sleep(61 * time.Second)
		synctest.Wait()
		_, freed = garbage.last("job")
		assert.True(t, freed)
		stop()
	})
}

func TestPodsAreAddedOldestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []types.UID
		w, err := podworker.New(podworker.Config{Handler: &recorder{}, StatusCache: observed{}, Parallel: 1,
			Hooks: podworker.Hooks{Synced: func(i podworker.SyncInfo) { order = append(order, i.UID) }}})
		require.NoError(t, err)
		loop, stop := runLoop(t, podworker.LoopConfig{Workers: w})
		pods := []*v1.Pod{newPod("c", 0), newPod("a", 0), newPod("b", 0)}
		for i, age := range []int64{30, 10, 20} {
			pods[i].CreationTimestamp = metav1.Unix(age, 0)
		}
		loop.AddPods(pods)
		synctest.Wait()
		assert.Equal(t, []types.UID{"a", "b", "c"}, order, "sl-15")
		stop()
	})
}

// A retaining is a Handler that calls retain when workers were removed.
type retaining struct {
	recorder
	retain func(keep func(types.UID) bool)
}

func (r *retaining) Retain(_ context.Context, keep func(types.UID) bool) error {
	r.retain(keep)
	return nil
}

func TestAPodRemovedWhileWorkersSettleDoesNotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &retaining{recorder: recorder{work: func() time.Duration { return time.Second }}}
		w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{}})
		require.NoError(t, err)
		loop, stop := runLoop(t, podworker.LoopConfig{Workers: w})
		web := newPod("web", 0)
		h.retain = func(keep func(types.UID) bool) {
			assert.False(t, keep("web"))
			assert.True(t, keep("other"))
			loop.RemovePods([]*v1.Pod{web}) // as a source may at that moment
		}
		loop.AddPods([]*v1.Pod{web})
		time.Sleep(2 * time.Second)
		loop.RemovePods([]*v1.Pod{web})
		loop.AddPods([]*v1.Pod{web}) // starts over after it has terminated
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Empty(t, w.Table().Desired())
		_, known := w.Table().State("web")
		assert.False(t, known, "it would never be terminated")
		stop()
	})
}

// A pod that had terminated, and was removed while the node was down, has no worker:
// only a collection finds it.
func TestRemovedPodsAreCollectedOnceEverySourceHasSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		garbage := &collectionRecorder{uids: []types.UID{"lost"}}
		w, err := podworker.New(podworker.Config{Handler: &recorder{}, StatusCache: observed{}})
		require.NoError(t, err)
		loop, stop := runLoop(t, podworker.LoopConfig{Workers: w, Sources: []string{"file", "api"}, Garbage: garbage})
		loop.SourceSynced("file")
		synctest.Wait()
		passes, _ := garbage.last("lost")
		assert.Zero(t, passes)
		for range 2 {
			loop.SourceSynced("api")
			synctest.Wait()
			passes, freed := garbage.last("lost")
			assert.Equal(t, 1, passes)
			assert.True(t, freed)
		}
		stop()
	})
}

func TestAFailedCollectionIsRetriedBeforeThePeriodIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		garbage := &collectionRecorder{fail: errors.New("the runtime is away")}
		w, err := podworker.New(podworker.Config{Handler: &recorder{}, StatusCache: observed{}})
		require.NoError(t, err)
		loop, stop := runLoop(t, podworker.LoopConfig{Workers: w, Sources: []string{"api"}, Garbage: garbage})
		time.Sleep(time.Second)
		loop.SourceSynced("api") // after 1 s, and again after 6, 16 and 36; 76 is after the period
		for _, c := range []struct {
			until  time.Duration
			passes int
		}{{4, 1}, {4, 2}, {10, 3}, {20, 4}, {19, 4}, {4, 5}} {
			time.Sleep(c.until * time.Second)
			synctest.Wait()
			passes, _ := garbage.last("")
			assert.Equal(t, c.passes, passes)
		}
		garbage.mu.Lock()
		garbage.fail = nil
		garbage.mu.Unlock()
		time.Sleep(30 * time.Second) // 76 s and on
		synctest.Wait()
		passes, _ := garbage.last("")
		assert.Equal(t, 6, passes)
		time.Sleep(26 * time.Second)
		synctest.Wait()
		passes, _ = garbage.last("")
		assert.Equal(t, 6, passes, "it works again, and the next pass waits for the period")
		stop()
	})
}

func TestAFailedCollectionIsAnEventOfTheNode(t *testing.T) { // cg-9
	synctest.Test(t, func(t *testing.T) {
		garbage := &collectionRecorder{fail: errors.New("a sandbox is stuck")}
		var mu sync.Mutex
		var reported []runtime.Event
		w, err := podworker.New(podworker.Config{Handler: &recorder{}, StatusCache: observed{}, Record: func(e runtime.Event) {
			mu.Lock()
			defer mu.Unlock()
			reported = append(reported, e)
		}})
		require.NoError(t, err)
		node := v1.ObjectReference{Kind: "Node", Name: "node"}
		_, stop := runLoop(t, podworker.LoopConfig{Workers: w, Garbage: garbage, Node: node})
		time.Sleep(61 * time.Second)
		synctest.Wait()
		garbage.mu.Lock()
		garbage.fail = nil
		garbage.mu.Unlock()
		time.Sleep(60 * time.Second)
		stop()
		assert.Equal(t, []runtime.Event{{Object: node, Type: v1.EventTypeWarning, Reason: "ContainerGCFailed", Message: "a sandbox is stuck"}}, reported)
	})
}
