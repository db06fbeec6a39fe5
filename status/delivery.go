package status

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Delivery is the progress of delivering the status of a pod to the sink.
type Delivery struct {
	// Update: Status is to be delivered. Delete: DeletePod is to be called after it. If
	// both are false, the sink is up to date.
	Update, Delete bool

	// Status is the status to deliver, or the last delivered one.
	Status v1.PodStatus

	// Withheld is the terminal phase that is not delivered because a container of the
	// pod may still run. Empty if there is none.
	Withheld v1.PodPhase

	// Overwritten: another writer changed the delivered status, and Status is delivered
	// again.
	Overwritten bool

	// Since is the time of the oldest change that is in no call yet. Zero if there is
	// none.
	Since time.Time

	// InFlight: a call of the sink has not returned yet.
	InFlight bool

	// Failures counts the consecutive failed calls; Err is the error of the last one. It is
	// repeated at RetryAt, or if that is zero, when fewer than Config.Parallel calls are
	// in flight.
	Failures int
	Err      error
	RetryAt  time.Time
}

// Delivery returns the progress of delivering the status of the pod, and whether the pod has
// been reported. The caller owns the result.
func (m *Manager) Delivery(uid types.UID) (Delivery, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.pods[uid] // the oldest incarnation; newer ones are delivered after it
	if e == nil || e.version == 0 && !e.forgotten {
		return Delivery{}, false
	}
	status := e.desired()
	d := Delivery{
		Update: e.version > e.sent, Delete: !e.deleted && (e.forgotten || e.finished && e.pod.DeletionTimestamp != nil),
		Status: *status.DeepCopy(), Overwritten: e.overwritten, Since: e.since,
		InFlight: e.state == busy, Failures: e.failures, Err: e.lastErr,
	}
	if e.withheld {
		d.Withheld = e.status.Phase
	}
	if e.state == delayed {
		d.RetryAt = e.retryAt
	}
	return d, true
}
