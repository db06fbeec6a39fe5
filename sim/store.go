package sim

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A store contains the desired pods, of an API server and of a directory of manifests, and
// stores the statuses of the API pods. It outlives agents. Pods in it
// are never modified in place.
type store struct {
	mu        sync.Mutex
	objects   map[types.UID]*v1.Pod // of the API; no two have one name
	names     map[string]bool       // of objects
	manifests map[string]*v1.Pod    // by name
	watchers  map[chan struct{}]struct{}
}

func newStore() *store {
	return &store{objects: map[types.UID]*v1.Pod{}, names: map[string]bool{}, manifests: map[string]*v1.Pod{}, watchers: map[chan struct{}]struct{}{}}
}

// watch returns a channel that receives a value at once and after every change, until
// stop is called.
func (s *store) watch() (changed <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	c <- struct{}{}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[c] = struct{}{}
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, c)
	}
}

func (s *store) changedLocked() {
	for c := range s.watchers {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// list returns the pods of the API or of the manifests, sorted by name.
func (s *store) list(static bool) []*v1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*v1.Pod
	if static {
		for _, pod := range s.manifests {
			out = append(out, pod)
		}
	} else {
		for _, pod := range s.objects {
			out = append(out, pod)
		}
	}
	slices.SortFunc(out, func(a, b *v1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func fullName(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }

// create adds a pod to the API. It returns false if the name or the UID is in use.
func (s *store) create(pod *v1.Pod) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[pod.UID] != nil {
		return false
	}
	if s.names[fullName(pod)] {
		return false
	}
	s.objects[pod.UID], s.names[fullName(pod)] = pod, true
	s.changedLocked()
	return true
}

// write adds a manifest, replacing one with the same name.
func (s *store) write(pod *v1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.manifests[fullName(pod)] = pod
	s.changedLocked()
}

// get returns the pod with the UID, and whether it is static; nil: there is none.
func (s *store) get(uid types.UID) (pod *v1.Pod, static bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.getLocked(uid)
}

func (s *store) getLocked(uid types.UID) (pod *v1.Pod, static bool) {
	if pod := s.objects[uid]; pod != nil {
		return pod, false
	}
	for _, pod := range s.manifests {
		if pod.UID == uid {
			return pod, true
		}
	}
	return nil, false
}

// update replaces a pod by a modified copy and returns the copy. It returns nil if there
// is no such pod or change returned false.
func (s *store) update(uid types.UID, change func(*v1.Pod) bool) *v1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	pod, static := s.getLocked(uid)
	if pod == nil {
		return nil
	}
	pod = pod.DeepCopy()
	if !change(pod) {
		return nil
	}
	if static {
		s.manifests[fullName(pod)] = pod
	} else {
		s.objects[uid] = pod
	}
	s.changedLocked()
	return pod
}

// remove removes the pod and returns it; nil: there was none.
func (s *store) remove(uid types.UID) *v1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	pod, static := s.getLocked(uid)
	switch {
	case pod == nil:
		return nil
	case static:
		delete(s.manifests, fullName(pod))
	default:
		delete(s.objects, uid)
		delete(s.names, fullName(pod))
	}
	s.changedLocked()
	return pod
}

// delete requests the deletion of a pod, as a DELETE request does: it sets the
// deletionTimestamp, and a later request may only shorten the grace period. A manifest
// is removed at once. It returns the pod after the change, and whether it was removed.
func (s *store) delete(uid types.UID, grace *int64) (pod *v1.Pod, gone bool) {
	if _, static := s.get(uid); static {
		return s.remove(uid), true
	}
	pod = s.update(uid, func(pod *v1.Pod) bool {
		if grace == nil {
			grace = pod.Spec.TerminationGracePeriodSeconds
		}
		if pod.DeletionTimestamp != nil && grace != nil && pod.DeletionGracePeriodSeconds != nil && *grace >= *pod.DeletionGracePeriodSeconds {
			return false
		}
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.NewTime(time.Now())), new(int64(0))
		if grace != nil {
			pod.DeletionTimestamp = new(metav1.NewTime(time.Now().Add(time.Duration(*grace) * time.Second)))
			pod.DeletionGracePeriodSeconds = new(*grace)
		}
		return true
	})
	return pod, false
}

// currentLocked returns the object that an agent refers to as pod; nil: there is none.
// A later pod with the same UID is another object: an API server would have given it
// another UID, and would reject the request because of its UID precondition (rules
// st-66, st-67). The caller must hold mu.
func (s *store) currentLocked(pod *v1.Pod) *v1.Pod {
	old := s.objects[pod.UID]
	if old == nil || old.Annotations[incarnationAnnotation] != pod.Annotations[incarnationAnnotation] {
		return nil
	}
	return old
}

// UpdatePodStatus implements status.Sink. The status of a pod that does not exist
// is discarded.
func (s *store) UpdatePodStatus(_ context.Context, pod *v1.Pod, status v1.PodStatus) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.currentLocked(pod); old != nil {
		updated := old.DeepCopy()
		updated.Status = status
		s.objects[pod.UID] = updated // watchers get no signal: the agent wrote the status itself
	}
	return nil
}

// DeletePod implements status.Sink. It removes a pod that has a deletionTimestamp.
func (s *store) DeletePod(_ context.Context, pod *v1.Pod) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.currentLocked(pod); old != nil && old.DeletionTimestamp != nil {
		delete(s.objects, pod.UID)
		delete(s.names, fullName(old))
		s.changedLocked()
	}
	return nil
}

// A storeSource is the API, or the manifests, as a podsource.PodSource.
type storeSource struct {
	store  *store
	static bool

	// list calls its argument, which lists the store, possibly with latency and faults.
	// If nil, the store is listed directly.
	list func(ctx context.Context, list func()) error
}

// Run implements podsource.PodSource.
func (s storeSource) Run(ctx context.Context, set func(pods []*v1.Pod)) error {
	changed, stop := s.store.watch()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		var pods []*v1.Pod
		list := func() { pods = s.store.list(s.static) }
		if s.list == nil {
			list()
		} else if err := s.list(ctx, list); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		set(pods)
	}
}
