package status

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// An Outstanding is what the sink has yet to be told of a pod, and why it has not
// been told (L-45).
type Outstanding struct {
	// Update: the sink is to be told Status. Delete: it is to be told, then, that
	// nothing of the pod is left. Neither: it knows all that may be said.
	Update, Delete bool

	// Status is what the sink is told next, or was told last. Describe(&shown,
	// &Status) says in words what that changes.
	Status v1.PodStatus

	// Held is the terminal phase that is not said yet because something of the
	// pod may run (inv-6); empty: none is.
	Held v1.PodPhase

	// Edited: the sink was told, and somebody else wrote over it (st-71). It is
	// told again.
	Edited bool

	// Since when the oldest change waits that no call has taken up; zero if none
	// does.
	Since time.Time

	// Calling: a call of the sink is under way.
	Calling bool

	// Failures in a row, the last of them with Err. The call is made again at
	// RetryAt; zero: as soon as there is a place for it.
	Failures int
	Err      error
	RetryAt  time.Time
}

// Outstanding returns what the sink has yet to be told of the pod, and whether the
// pod is known. Nothing of the result is shared.
func (m *Manager) Outstanding(uid types.UID) (Outstanding, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.pods[uid] // the oldest incarnation: the others wait for it
	if e == nil || e.version == 0 && !e.gone {
		return Outstanding{}, false
	}
	say := e.say()
	o := Outstanding{
		Update: e.version > e.sent, Delete: !e.deleted && (e.gone || e.finished && e.pod.DeletionTimestamp != nil),
		Status: *say.DeepCopy(), Edited: e.edited, Since: e.since,
		Calling: e.spot == busy, Failures: e.failures, Err: e.lastErr,
	}
	if e.held {
		o.Held = e.status.Phase
	}
	if e.spot == delayed {
		o.RetryAt = e.retryAt
	}
	return o, true
}

// Acknowledged reports whether the sink knows how this instance of a container of
// the pod has ended, so that the instance need not be kept for the sake of the
// status (L-41). Of a pod that is not known it is true: nobody will ask.
func (m *Manager) Acknowledged(uid types.UID, containerID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.pods[uid].last()
	if e == nil || e.version == 0 {
		return true
	}
	return e.version == e.sent && exitShown(&e.status, containerID)
}

// exitShown reports whether the status has an end of that instance.
func exitShown(s *v1.PodStatus, id string) bool {
	for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for i := range list {
			if saidExit(&list[i], id) != nil {
				return true
			}
			// An older instance than those that are shown has been shown.
			if list[i].ContainerID == id && list[i].State.Running != nil {
				return false
			}
		}
	}
	return false
}
