package client

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// keepResponse stores the last response of the API server until the watch has delivered it. The
// caller must hold the lock of e.
func (s *Statuses) keepResponse(e *podStatus, response *v1.Pod) {
	e.response = &v1.Pod{ObjectMeta: withoutManagedFields(response).ObjectMeta, Status: response.Status}
	if e.static {
		return // few, and of another object
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods[e.pod.UID] == e {
		s.answered[e.pod.UID] = struct{}{}
	}
}

// dropResponse removes a response that the watch has delivered, which would otherwise use memory
// until the next write. The caller must hold the lock of e.
func (s *Statuses) dropResponse(e *podStatus) {
	if e.static || e.response == nil {
		return
	}
	if current := s.cfg.Pods.Pod(e.pod.UID); current != nil {
		order, err := resourceversion.CompareResourceVersion(e.response.ResourceVersion, current.ResourceVersion)
		if err != nil || order > 0 {
			return
		}
	} else if !s.cfg.Pods.Synced() {
		return
	}
	e.response = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.answered, e.pod.UID)
}

// dropResponses removes the responses that the watch has delivered. Those of entries that are in
// use remain until a later call.
func (s *Statuses) dropResponses() {
	s.mu.Lock()
	uids := slices.Collect(maps.Keys(s.answered))
	s.mu.Unlock()
	for _, uid := range uids {
		if e := s.idle(uid); e != nil {
			s.dropResponse(e)
			s.release(e)
		}
	}
}
