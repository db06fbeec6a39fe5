package sim

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// A seeded derives the latencies of the steps of a Node from a seed, the step and its
// time, so that they do not depend on the order of goroutines.
type seeded struct {
	seed  uint64
	began time.Time
	ended chan struct{} // closed when the context of Run is done

	mu      sync.Mutex
	pending map[Call]bool // steps of later that have started
}

func newSeeded(seed uint64) *seeded {
	return &seeded{seed: seed, began: time.Now(), ended: make(chan struct{}), pending: map[Call]bool{}}
}

func (s *seeded) step(what string, uid types.UID) time.Duration {
	return latency(hash(s.seed, 4, 0, uint64(time.Since(s.began)), what, string(uid))) / 16
}

func (s *seeded) pace(what string, uid types.UID) {
	t := time.NewTimer(s.step(what, uid))
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.ended:
	}
}

// later calls do after the latency of a step, unless an equal step for the pod is
// pending: the number of events at one instant makes no difference.
func (s *seeded) later(what string, uid types.UID, do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Call{Method: what, UID: uid}
	if s.pending[c] {
		return
	}
	s.pending[c] = true
	time.AfterFunc(s.step(what, uid), func() {
		s.mu.Lock()
		delete(s.pending, c)
		s.mu.Unlock()
		select {
		case <-s.ended:
		default:
			do()
		}
	})
}

// jitter returns d plus up to half of d.
func (s *seeded) jitter(d time.Duration) time.Duration {
	return d + d/1000*time.Duration(hash(s.seed, 3, 0, uint64(time.Since(s.began)))%500)
}

// lister returns rt with the latency of a step before each call and each event.
func (s *seeded) lister(rt runtime.Lister) runtime.Lister {
	paced := pacedLister{rt, s.pace}
	if w, ok := compose.As[runtime.Watcher](rt); ok {
		return pacedWatcher{paced, w, s.later}
	}
	return paced
}

type pacedLister struct {
	runtime.Lister
	pace pace
}

func (l pacedLister) Pods(ctx context.Context) ([]*runtime.Pod, error) {
	l.pace("Pods", "")
	return l.Lister.Pods(ctx)
}

func (l pacedLister) PodStatus(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
	l.pace("PodStatus", uid)
	return l.Lister.PodStatus(ctx, uid)
}

type pacedWatcher struct {
	pacedLister
	watcher runtime.Watcher
	later   later
}

func (w pacedWatcher) Watch(ctx context.Context, changed func(uid types.UID)) error {
	return w.watcher.Watch(ctx, func(uid types.UID) { w.later("Watch", uid, func() { changed(uid) }) })
}

// A pacedRuntime has the latency of a step before SyncPod and KillPod.
type pacedRuntime struct {
	runtime.Runtime
	pace pace
}

func (r pacedRuntime) Unwrap() any { return r.Runtime }

func (r pacedRuntime) SyncPod(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	r.pace("SyncPod", req.Pod.UID)
	return r.Runtime.SyncPod(ctx, req)
}

func (r pacedRuntime) KillPod(ctx context.Context, req runtime.KillRequest) error {
	r.pace("KillPod", req.UID)
	return r.Runtime.KillPod(ctx, req)
}

// A pacedStatusSink has the latency of a step before each call.
type pacedStatusSink struct {
	status.Sink
	pace pace
}

func (s pacedStatusSink) UpdatePodStatus(ctx context.Context, pod *v1.Pod, st v1.PodStatus) error {
	s.pace("UpdatePodStatus", pod.UID)
	return s.Sink.UpdatePodStatus(ctx, pod, st)
}

func (s pacedStatusSink) DeletePod(ctx context.Context, pod *v1.Pod) error {
	s.pace("DeletePod", pod.UID)
	return s.Sink.DeletePod(ctx, pod)
}
