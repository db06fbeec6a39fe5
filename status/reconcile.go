package status

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// steady is how long what the manager says must have stood before another edit
// of it counts as the first.
const steady = 30 * time.Minute

// Reconcile says what the pod's record shows now, pod.Status, after its status
// changed there. If that is not what was last said, somebody else wrote over it,
// or the record was restored from an older one, and it is said again (st-71): after
// Config.RetryMin, since what is shown may be no more than an echo of an earlier
// write, and later with each time that it does not stand, up to ten times
// Config.RetryMax. A sink whose records cannot hold all that is said costs no more
// than that. What others own may change as they like (lq-31).
//
// A pod that nothing was said of yet, or that was forgotten, is none of its
// business. Like Report it does not wait for the sink.
func (m *Manager) Reconcile(pod *v1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.pods[pod.UID].last()
	if e == nil || e.gone || e.deleted || e.version == 0 {
		return
	}
	e.pod, e.shown = pod, &pod.Status
	m.pushLocked(e)
}

// compare takes note of whether the record shows something else than it was last
// told. It is called when nothing is under way.
func (e *entry) compare(now time.Time) {
	say := e.say()
	was := e.edited
	e.edited, e.shown = !Equal(&say, e.shown), nil
	if e.edited && !was && now.Sub(e.corrected) >= steady {
		e.corrections = 0
	}
}

// say returns what the sink is to be told of the entry at present.
func (e *entry) say() v1.PodStatus {
	if e.held {
		return Hold(e.status, e.said, &e.pod.Status)
	}
	return e.status
}
