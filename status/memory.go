package status

import (
	"context"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A MemorySink remembers the last status of each pod, and which pods were
// deleted. It serves tests, and agents whose pods are nobody else's business.
// The zero value is ready for use; all methods may be called at any time.
//
// A deleted pod stays remembered, with its last status, until Drop.
type MemorySink struct {
	mu      sync.Mutex // guards the fields below
	pods    map[types.UID]remembered
	changed chan struct{} // closed with the next change; nil while nobody waits
}

type remembered struct {
	status  v1.PodStatus
	deleted bool
}

// UpdatePodStatus remembers the status.
func (s *MemorySink) UpdatePodStatus(_ context.Context, pod *v1.Pod, status v1.PodStatus) error {
	s.set(pod.UID, func(r *remembered) { r.status, r.deleted = status, false })
	return nil
}

// DeletePod remembers that the pod was deleted.
func (s *MemorySink) DeletePod(_ context.Context, pod *v1.Pod) error {
	s.set(pod.UID, func(r *remembered) { r.deleted = true })
	return nil
}

// Status returns the last status of the pod, and whether there is one. Deleted
// pods have theirs.
func (s *MemorySink) Status(uid types.UID) (v1.PodStatus, bool) {
	s.mu.Lock()
	r, ok := s.pods[uid]
	s.mu.Unlock()
	return *r.status.DeepCopy(), ok
}

// Deleted reports whether the pod was deleted after its last status.
func (s *MemorySink) Deleted(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pods[uid].deleted
}

// Drop forgets the pod.
func (s *MemorySink) Drop(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, uid)
}

// Wait returns the first status of the pod, from the present one on, of which
// want says true. Statuses that follow each other fast may be passed over. If
// ctx ends first, the error names the phase the pod had last.
func (s *MemorySink) Wait(ctx context.Context, uid types.UID, want func(v1.PodStatus) bool) (v1.PodStatus, error) {
	return s.wait(ctx, uid, func(r *remembered) bool { return want(*r.status.DeepCopy()) })
}

// WaitDeleted waits until the pod was deleted, and returns its last status.
func (s *MemorySink) WaitDeleted(ctx context.Context, uid types.UID) (v1.PodStatus, error) {
	return s.wait(ctx, uid, func(r *remembered) bool { return r.deleted })
}

func (s *MemorySink) wait(ctx context.Context, uid types.UID, want func(*remembered) bool) (v1.PodStatus, error) {
	for {
		s.mu.Lock()
		r, ok := s.pods[uid]
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		if ok && want(&r) {
			return *r.status.DeepCopy(), nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return *r.status.DeepCopy(), fmt.Errorf("status: wait for pod %s, now %q: %w", uid, string(r.status.Phase), context.Cause(ctx))
		}
	}
}

// set changes what is remembered of a pod and lets those in wait look again.
func (s *MemorySink) set(uid types.UID, change func(*remembered)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.pods[uid]
	change(&r)
	if s.pods == nil {
		s.pods = make(map[types.UID]remembered)
	}
	s.pods[uid] = r
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}
