package status

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// steady is the time without an overwrite after which corrections is reset.
const steady = 30 * time.Minute

// Reconcile compares pod.Status, as it is recorded now, for example in the API server, with
// the status delivered last. If they differ, another writer has changed it or an older record
// was restored, and the status is delivered again: after Config.RetryMin, since pod.Status may
// be older than the last delivery, and after a longer delay with each consecutive correction,
// up to ten times Config.RetryMax. Fields that other writers own are not compared.
//
// Reconcile does not wait for the sink and does nothing if the pod has not been reported or was
// forgotten.
func (m *Manager) Reconcile(pod *v1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.pods[pod.UID].last()
	if e == nil || e.forgotten || e.deleted || e.version == 0 {
		return
	}
	e.pod, e.recorded = pod, &pod.Status
	m.pushLocked(e)
}

// compare sets overwritten if the recorded status is not the delivered one. It must not be
// called while a call of the sink is in flight.
func (e *entry) compare(now time.Time) {
	say := e.desired()
	was := e.overwritten
	e.overwritten, e.recorded = !equal(&say, e.recorded), nil
	if e.overwritten && !was && now.Sub(e.corrected) >= steady {
		e.corrections = 0
	}
}

// desired returns the status to deliver.
func (e *entry) desired() v1.PodStatus {
	if e.withheld {
		return withholdPhase(e.status, e.published, &e.pod.Status)
	}
	return e.status
}
