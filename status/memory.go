package status

import (
	"context"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A MemorySink keeps the last status of each pod in memory, and which pods were deleted, for
// tests and for agents whose statuses are not recorded elsewhere. The zero value is ready to use.
// Safe for concurrent use.
//
// A deleted pod is kept, with its last status, until Drop.
type MemorySink struct {
	mu      sync.Mutex // guards the fields below
	pods    map[types.UID]cached
	changed chan struct{} // closed by the next change; nil while no wait is in progress
}

type cached struct {
	status  v1.PodStatus
	deleted bool
}

// UpdatePodStatus implements Sink.
func (s *MemorySink) UpdatePodStatus(_ context.Context, pod *v1.Pod, status v1.PodStatus) error {
	s.set(pod.UID, func(r *cached) { r.status, r.deleted = status, false })
	return nil
}

// DeletePod implements Sink.
func (s *MemorySink) DeletePod(_ context.Context, pod *v1.Pod) error {
	s.set(pod.UID, func(r *cached) { r.deleted = true })
	return nil
}

// Status returns the last status of the pod, deleted or not, and whether there is one. The caller
// owns it.
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

// Drop removes the pod.
func (s *MemorySink) Remove(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, uid)
}

// Wait blocks until ok returns true for the last status of the pod and returns that status.
// Statuses that are replaced quickly may be skipped. If ctx is done first, the error contains
// the last phase.
func (s *MemorySink) Wait(ctx context.Context, uid types.UID, ok func(v1.PodStatus) bool) (v1.PodStatus, error) {
	return s.wait(ctx, uid, func(r *cached) bool { return ok(*r.status.DeepCopy()) })
}

// WaitDeleted blocks until the pod is deleted and returns its last status.
func (s *MemorySink) WaitDeleted(ctx context.Context, uid types.UID) (v1.PodStatus, error) {
	return s.wait(ctx, uid, func(r *cached) bool { return r.deleted })
}

func (s *MemorySink) wait(ctx context.Context, uid types.UID, done func(*cached) bool) (v1.PodStatus, error) {
	for {
		s.mu.Lock()
		r, ok := s.pods[uid]
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		if ok && done(&r) {
			return *r.status.DeepCopy(), nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return *r.status.DeepCopy(), fmt.Errorf("status: wait for pod %s, now %q: %w", uid, string(r.status.Phase), context.Cause(ctx))
		}
	}
}

// set changes the entry of a pod and wakes wait.
func (s *MemorySink) set(uid types.UID, change func(*cached)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.pods[uid]
	change(&r)
	if s.pods == nil {
		s.pods = make(map[types.UID]cached)
	}
	s.pods[uid] = r
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}
