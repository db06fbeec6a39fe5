package shutdown

import (
	"context"
	"maps"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A State is the part of a [Manager] that other parts of a node read: the pod pipeline, which a
// Manager requires to run, and the node status. It is constructed before them. The zero value is
// ready for use: there is no shutdown. It must not be used by two Managers. Safe for concurrent
// use; its methods do not block.
type State struct {
	// Changed is called when the result of Err has changed; the node status should be updated
	// immediately. It must not block, and must not be changed after New. If nil, it is not
	// called.
	Changed func()

	mu       sync.Mutex // guards the fields below
	stopping bool
	draining map[types.UID]bool // pods that are not ready because of the shutdown
}

// Err returns [ErrShuttingDown] during a shutdown, otherwise nil. The node is not ready while it is
// not nil.
func (s *State) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return ErrShuttingDown
	}
	return nil
}

// Admit implements pipeline.Admitter: it rejects all pods during a shutdown.
func (s *State) Admit(context.Context, *v1.Pod) *runtime.Rejection {
	if s.Err() != nil {
		return &runtime.Rejection{Reason: ReasonNodeShutdown, Message: messageNodeShutdown}
	}
	return nil
}

// Unready reports whether the pod is not ready because it is about to be terminated.
func (s *State) Unready(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining[uid]
}

func (s *State) setStopping(stopping bool) {
	s.mu.Lock()
	s.stopping = stopping
	s.mu.Unlock()
	if s.Changed != nil {
		s.Changed()
	}
}

// drain makes pods not ready.
func (s *State) drain(pods []*v1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining == nil {
		s.draining = map[types.UID]bool{}
	}
	for _, pod := range pods {
		s.draining[pod.UID] = true
	}
}

// undrain makes all pods ready again, and returns those that were not.
func (s *State) undrain() map[types.UID]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	drained := maps.Clone(s.draining)
	clear(s.draining)
	return drained
}
