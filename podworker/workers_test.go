package podworker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

func TestNewNamesTheMissingField(t *testing.T) {
	_, err := podworker.New(podworker.Config{})
	assert.EqualError(t, err, "podworker: Config.Handler is nil")
	_, err = podworker.New(podworker.Config{Handler: &recorder{}})
	assert.EqualError(t, err, "podworker: Config.StatusCache is nil")
	_, err = podworker.New(podworker.Config{Handler: &recorder{}, StatusCache: observed{}, Retry: -1})
	assert.EqualError(t, err, "podworker: negative Config.Resync, Retry or Parallel")
	_, err = podworker.NewLoop(podworker.LoopConfig{})
	assert.EqualError(t, err, "podworker: LoopConfig.Workers is nil")
}

// observed is a StatusCache of a runtime that has just been listed.
type observed struct {
	list func() []*runtime.Pod // nil: it is empty
}

func (observed) Healthy() error { return nil }

func (o observed) Pods() []*runtime.Pod {
	if o.list == nil {
		return nil
	}
	return o.list()
}

func (observed) Get(uid types.UID) (*runtime.PodStatus, error) {
	return &runtime.PodStatus{UID: uid, ObservedAt: time.Now()}, nil
}

func (o observed) GetNewerThan(_ context.Context, uid types.UID, _ time.Time) (*runtime.PodStatus, error) {
	return o.Get(uid)
}

// A recorder is a Handler that checks the invariants of its calls and records the last
// ones.
type recorder struct {
	work func() time.Duration // duration of a call

	mu       sync.Mutex
	busy     map[types.UID]bool
	stage    map[types.UID]string
	grace    map[types.UID]int64
	last     map[types.UID]*v1.Pod
	inFlight int
	most     int
	broken   []string
}

func (r *recorder) enter(w podworker.SyncRequest, stage string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy == nil {
		r.busy, r.stage = map[types.UID]bool{}, map[types.UID]string{}
		r.grace, r.last = map[types.UID]int64{}, map[types.UID]*v1.Pod{}
	}
	if r.busy[w.UID] {
		r.broken = append(r.broken, fmt.Sprintf("%s: %s overlaps another call", w.UID, stage))
	}
	if r.stage[w.UID] > stage { // "1sync" < "2terminate" < "3cleanup"
		r.broken = append(r.broken, fmt.Sprintf("%s: %s after %s", w.UID, stage, r.stage[w.UID]))
	}
	if g := w.GracePeriodSeconds; g != nil {
		if before, ok := r.grace[w.UID]; ok && *g > before {
			r.broken = append(r.broken, fmt.Sprintf("%s: grace grew from %d to %d", w.UID, before, *g))
		}
		r.grace[w.UID] = *g
	}
	r.busy[w.UID], r.stage[w.UID], r.last[w.UID] = true, stage, w.Pod
	r.inFlight++
	r.most = max(r.most, r.inFlight)
}

func (r *recorder) do(ctx context.Context, w podworker.SyncRequest, stage string) error {
	r.enter(w, stage)
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.busy[w.UID] = false
		r.inFlight--
	}()
	if r.work == nil {
		return nil
	}
	select {
	case <-time.After(r.work()):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *recorder) Sync(ctx context.Context, w podworker.SyncRequest) (podworker.SyncResult, error) {
	return podworker.SyncResult{}, r.do(ctx, w, "1sync")
}

func (r *recorder) Terminate(ctx context.Context, w podworker.SyncRequest) error {
	return r.do(ctx, w, "2terminate")
}

func (r *recorder) Cleanup(ctx context.Context, w podworker.SyncRequest) error {
	return r.do(ctx, w, "3cleanup")
}

func newPod(uid string, generation int) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Name: uid, Namespace: "default", Generation: int64(generation)},
		Spec:       v1.PodSpec{TerminationGracePeriodSeconds: new(int64(30))},
	}
}

func TestInvariantsHoldUnderRandomHistories(t *testing.T) { // pw-1, pw-2, inv-1, inv-4, inv-14
	seed := seedrun.Seed(t)
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var lock sync.Mutex
		h := &recorder{work: func() time.Duration {
			lock.Lock()
			defer lock.Unlock()
			return time.Duration(rng.IntN(3000)) * time.Millisecond
		}}
		w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{}, Parallel: 7})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error)
		go func() { ran <- w.Run(ctx) }()

		ended := map[string]bool{}
		latest := map[string]*v1.Pod{}
		var kills []<-chan podworker.Outcome
		script := rand.New(rand.NewPCG(seed, 1))
		for step := range 2000 {
			uid := fmt.Sprint("pod-", script.IntN(20))
			switch script.IntN(12) {
			case 0:
				w.Remove(types.UID(uid))
				ended[uid] = latest[uid] != nil
			case 1:
				if latest[uid] != nil {
					kills = append(kills, w.Kill(types.UID(uid), podworker.KillOptions{GracePeriodSeconds: new(int64(script.IntN(60)))}))
					ended[uid] = true
				}
			case 2, 3, 4:
				w.Sync(types.UID(uid))
			default:
				pod := newPod(uid, step)
				w.Update(pod, false)
				if !ended[uid] {
					latest[uid] = pod
				}
			}
			time.Sleep(time.Duration(script.IntN(500)) * time.Millisecond)
		}
		time.Sleep(10 * time.Minute)
		for _, k := range kills {
			<-k
		}
		cancel()
		require.NoError(t, <-ran)
		assert.Empty(t, h.broken)
		assert.LessOrEqual(t, h.most, 7, "Config.Parallel")
		for uid, pod := range latest {
			if !ended[uid] {
				assert.Equal(t, pod.Generation, h.last[types.UID(uid)].Generation, "inv-14: the last spec is the one that counts")
			} else {
				state, ok := w.Table().State(types.UID(uid))
				assert.True(t, ok)
				assert.Equal(t, podworker.Finished, state, uid)
			}
		}
	})
}

func TestIdlePodsHoldNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := podworker.New(podworker.Config{Handler: &recorder{}, StatusCache: observed{}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error)
		go func() { ran <- w.Run(ctx) }()
		synctest.Wait()
		before := goruntime.NumGoroutine()
		for i := range 1000 {
			w.Update(newPod(fmt.Sprint("pod-", i), 0), true)
		}
		synctest.Wait()
		assert.Less(t, goruntime.NumGoroutine(), before+100, "inv-17: goroutines of other tests come and go, one per pod would not")
		cancel()
		require.NoError(t, <-ran)
	})
}

// firsts counts calls with First set.
type firsts struct {
	*recorder
	n int
}

func (f *firsts) Sync(ctx context.Context, w podworker.SyncRequest) (podworker.SyncResult, error) {
	if w.First {
		f.n++
	}
	return f.recorder.Sync(ctx, w)
}

func TestACallThatDoesNotReachTheHandlerIsNotTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &firsts{recorder: &recorder{}}
		w, err := podworker.New(podworker.Config{Handler: h, StatusCache: &blind{until: time.Now().Add(5 * time.Second)}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error)
		go func() { ran <- w.Run(ctx) }()
		w.Update(newPod("web", 0), true)
		time.Sleep(3 * time.Minute)
		cancel()
		require.NoError(t, <-ran)
		assert.Equal(t, 1, h.n, "admission, which the Handler does once, was left out")
	})
}

func TestAStatusErrorIsRecordedAndRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &recorder{}
		var events []runtime.Event
		w, err := podworker.New(podworker.Config{Handler: h, StatusCache: &blind{until: time.Now().Add(5 * time.Second)},
			Record: func(e runtime.Event) { events = append(events, e) }})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error)
		go func() { ran <- w.Run(ctx) }()
		w.Update(newPod("web", 0), true)
		synctest.Wait()
		require.Len(t, events, 1)
		assert.Equal(t, "FailedSync", events[0].Reason, "pw-37")
		assert.Equal(t, "error determining status: no light", events[0].Message)
		assert.Empty(t, h.stage)
		s, ok := w.Snapshot("web")
		require.True(t, ok)
		assert.Contains(t, s.Err, "no light")
		assert.False(t, s.Next.IsZero())
		time.Sleep(16 * time.Second)
		cancel()
		require.NoError(t, <-ran)
		assert.Equal(t, "1sync", h.stage["web"])
	})
}

// blind is a StatusCache that returns errors until a given time.
type blind struct{ until time.Time }

func (*blind) Healthy() error { return nil }

func (*blind) Pods() []*runtime.Pod { return nil }

func (b *blind) Get(uid types.UID) (*runtime.PodStatus, error) {
	if time.Now().Before(b.until) {
		return nil, fmt.Errorf("no light")
	}
	return observed{}.Get(uid)
}

func (b *blind) GetNewerThan(_ context.Context, uid types.UID, _ time.Time) (*runtime.PodStatus, error) {
	return b.Get(uid)
}

// stops records the grace period passed to Terminate.
type stops struct {
	recorder
	grace []*int64
}

func (s *stops) Terminate(_ context.Context, w podworker.SyncRequest) error {
	s.grace = append(s.grace, w.GracePeriodSeconds)
	return nil
}

func TestAnOrphanHasTheGracePeriodOfItsCreation(t *testing.T) { // lq-33, sl-56
	for _, grace := range []*int64{nil, new(int64(1))} {
		synctest.Test(t, func(t *testing.T) {
			h := new(stops)
			w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{}, OrphanGrace: grace})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			ran := make(chan error)
			go func() { ran <- w.Run(ctx) }()
			w.KillOrphan(&runtime.Pod{UID: "lost"})
			synctest.Wait()
			cancel()
			require.NoError(t, <-ran)
			assert.Equal(t, []*int64{grace}, h.grace)
		})
	}
}
