package podsapi

import (
	"crypto/sha256"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// PodChanged reports that a pod was added or removed, or that its object or its status has
// changed. The functions of Config must already return the change.
func (s *Server) PodChanged(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watches {
		w.add(uid)
	}
}

// WatchPods sends all pods and then their changes, until the client ends the call.
func (s *Server) WatchPods(_ *api.WatchPodsRequest, to grpc.ServerStreamingServer[api.WatchPodsEvent]) error {
	changed, err := s.begin()
	if err != nil {
		return err
	}
	defer s.end(changed)
	sent := sentPods{}
	for _, pod := range s.sorted() {
		if err := s.send(to, sent, pod.UID, pod); err != nil {
			return err
		}
	}
	if err := to.Send(&api.WatchPodsEvent{Type: api.EventType_INITIAL_SYNC_COMPLETE}); err != nil {
		return err
	}
	for {
		select {
		case <-to.Context().Done():
			return status.FromContextError(to.Context().Err()).Err()
		case <-changed.wake:
		}
		for _, uid := range changed.take() {
			pod, _ := s.cfg.Pods.Pod(uid)
			if err := s.send(to, sent, uid, pod); err != nil {
				return err
			}
		}
	}
}

// begin registers a watch, before it lists the pods.
func (s *Server) begin() (*changes, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.watches) >= s.cfg.MaxWatches {
		return nil, status.Errorf(codes.ResourceExhausted, "%d watches are in progress, which is the limit", len(s.watches))
	}
	w := &changes{pods: map[types.UID]struct{}{}, wake: make(chan struct{}, 1)}
	s.watches[w] = struct{}{}
	return w, nil
}

func (s *Server) end(w *changes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watches, w)
}

// send sends the state of a pod, nil if there is none, unless the client has it.
func (s *Server) send(to grpc.ServerStreamingServer[api.WatchPodsEvent], sent sentPods, uid types.UID, pod *v1.Pod) error {
	var encoded []byte
	if pod != nil {
		var err error
		if encoded, err = s.encode(pod); err != nil {
			return err
		}
	}
	if event := sent.update(uid, pod, encoded); event != nil {
		return to.Send(event)
	}
	return nil
}

// A sentPod identifies the state of a pod that was sent to a client.
type sentPod struct {
	namespace, name string
	digest          [sha256.Size]byte
}

// sentPods are the pods that a client has received.
type sentPods map[types.UID]sentPod

// update returns the event with which a client receives the state of a pod; nil if it has it.
// A nil pod was removed.
func (s sentPods) update(uid types.UID, pod *v1.Pod, encoded []byte) *api.WatchPodsEvent {
	before, had := s[uid]
	if pod == nil {
		if !had {
			return nil
		}
		delete(s, uid)
		removed := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: before.namespace, Name: before.name, UID: uid}}
		encoded, _ = removed.Marshal() // three strings can be encoded
		return &api.WatchPodsEvent{Type: api.EventType_DELETED, Pod: encoded}
	}
	after := sentPod{pod.Namespace, pod.Name, sha256.Sum256(encoded)}
	if had && before == after {
		return nil
	}
	s[uid] = after
	if had {
		return &api.WatchPodsEvent{Type: api.EventType_MODIFIED, Pod: encoded}
	}
	return &api.WatchPodsEvent{Type: api.EventType_ADDED, Pod: encoded}
}

// changes are the pods that have changed since a watch has sent them.
type changes struct {
	wake chan struct{} // has a value if pods is not empty

	mu   sync.Mutex // guards pods
	pods map[types.UID]struct{}
}

func (c *changes) add(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pods[uid] = struct{}{}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// take returns the changed pods in the order of their UIDs, and removes them.
func (c *changes) take() (uids []types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid := range c.pods {
		uids = append(uids, uid)
	}
	clear(c.pods)
	slices.Sort(uids)
	return uids
}
