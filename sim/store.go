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

// A store has the pods that are wanted, as an API server and a directory of
// manifests have them, and takes the statuses of those of the API. It outlives
// agents. Pods in it are never changed in place.
type store struct {
	mu        sync.Mutex
	objects   map[types.UID]*v1.Pod // of the API; no two have one name
	names     map[string]bool       // of objects
	manifests map[string]*v1.Pod    // by name
	watching  map[chan struct{}]struct{}
}

func newStore() *store {
	return &store{objects: map[types.UID]*v1.Pod{}, names: map[string]bool{}, manifests: map[string]*v1.Pod{}, watching: map[chan struct{}]struct{}{}}
}

// watch returns a channel that gets a signal with every change, until stop.
func (s *store) watch() (changed <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	c <- struct{}{}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watching[c] = struct{}{}
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watching, c)
	}
}

func (s *store) changedLocked() {
	for c := range s.watching {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// list returns the pods of the API or of the manifests, by name.
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

// create adds a pod to the API, and reports whether it did: a name, and a UID,
// is taken once.
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

// write puts a manifest in the place of the one of its name.
func (s *store) write(pod *v1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.manifests[fullName(pod)] = pod
	s.changedLocked()
}

// get returns the wanted pod of that UID, and whether it is static.
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

// change replaces a wanted pod by a changed copy, and returns that; nil: there
// is none, or change refused.
func (s *store) change(uid types.UID, change func(*v1.Pod) bool) *v1.Pod {
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

// drop takes the pod away, and returns it; nil: there was none.
func (s *store) drop(uid types.UID) *v1.Pod {
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

// delete asks for the deletion of a pod, as a DELETE of the API does: it gets a
// deletionTimestamp, and a later one may only shorten its grace. A manifest goes
// at once. It returns the pod as it is then, and whether it is gone.
func (s *store) delete(uid types.UID, grace *int64) (pod *v1.Pod, gone bool) {
	if _, static := s.get(uid); static {
		return s.drop(uid), true
	}
	pod = s.change(uid, func(pod *v1.Pod) bool {
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

// currentLocked returns the object that an agent means by pod; nil: there is none. One
// that has come to be since under the same UID is another: an API would have
// given it another UID, and refuse what is meant for the first by the
// precondition (st-66, st-67).
func (s *store) currentLocked(pod *v1.Pod) *v1.Pod {
	old := s.objects[pod.UID]
	if old == nil || old.Annotations[lifeAnnotation] != pod.Annotations[lifeAnnotation] {
		return nil
	}
	return old
}

// UpdatePodStatus implements status.StatusSink. The status of a pod that is not
// there is thrown away.
func (s *store) UpdatePodStatus(_ context.Context, pod *v1.Pod, status v1.PodStatus) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.currentLocked(pod); old != nil {
		updated := old.DeepCopy()
		updated.Status = status
		s.objects[pod.UID] = updated // no news for an agent: the status is its own
	}
	return nil
}

// DeletePod implements status.StatusSink: a pod that is being deleted goes.
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

	// look takes a look at the store; a test of faults does so elsewhere.
	look func(ctx context.Context, list func()) error
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
		if s.look == nil {
			list()
		} else if err := s.look(ctx, list); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		set(pods)
	}
}
