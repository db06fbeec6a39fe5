package sim

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// A seeded draws the durations of the steps of a Node from a seed, from the step and
// from its time, so that they do not depend on the order of goroutines.
type seeded struct {
	seed  uint64
	began time.Time
	ended chan struct{} // closed when Run ends

	mu     sync.Mutex
	coming map[Call]bool // steps of later that have begun
}

func newSeeded(seed uint64) *seeded {
	return &seeded{seed: seed, began: time.Now(), ended: make(chan struct{}), coming: map[Call]bool{}}
}

func (s *seeded) step(what string, uid types.UID) time.Duration {
	return moment(dice(s.seed, 4, 0, uint64(time.Since(s.began)), what, string(uid))) / 16
}

func (s *seeded) pace(what string, uid types.UID) {
	t := time.NewTimer(s.step(what, uid))
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.ended:
	}
}

// later has do done after a step, unless such a step for the pod has begun and will
// do it: how many events occur at one instant makes no difference.
func (s *seeded) later(what string, uid types.UID, do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Call{Method: what, UID: uid}
	if s.coming[c] {
		return
	}
	s.coming[c] = true
	time.AfterFunc(s.step(what, uid), func() {
		s.mu.Lock()
		delete(s.coming, c)
		s.mu.Unlock()
		select {
		case <-s.ended:
		default:
			do()
		}
	})
}

// jitter adds up to half of d.
func (s *seeded) jitter(d time.Duration) time.Duration {
	return d + d/1000*time.Duration(dice(s.seed, 3, 0, uint64(time.Since(s.began)))%500)
}

// lister returns rt with a step before each call, and before each of its events.
func (s *seeded) lister(rt runtime.Lister) runtime.Lister {
	paced := pacedLister{rt, s.pace}
	if w, ok := runtime.As[runtime.Watcher](rt); ok {
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

// A pacedRuntime takes a step before each action.
type pacedRuntime struct {
	runtime.Runtime
	pace pace
}

func (r pacedRuntime) Unwrap() runtime.Runtime { return r.Runtime }

func (r pacedRuntime) SyncPod(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	r.pace("SyncPod", req.Pod.UID)
	return r.Runtime.SyncPod(ctx, req)
}

func (r pacedRuntime) KillPod(ctx context.Context, req runtime.KillRequest) error {
	r.pace("KillPod", req.UID)
	return r.Runtime.KillPod(ctx, req)
}

// A pacedStatusSink takes a step before each call.
type pacedStatusSink struct {
	status.StatusSink
	pace pace
}

func (s pacedStatusSink) UpdatePodStatus(ctx context.Context, pod *v1.Pod, st v1.PodStatus) error {
	s.pace("UpdatePodStatus", pod.UID)
	return s.StatusSink.UpdatePodStatus(ctx, pod, st)
}

func (s pacedStatusSink) DeletePod(ctx context.Context, pod *v1.Pod) error {
	s.pace("DeletePod", pod.UID)
	return s.StatusSink.DeletePod(ctx, pod)
}
