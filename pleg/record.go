package pleg

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A read is one read of the runtime: a list or an inspection. Both fields are set together, before the
// read begins.
type read struct {
	n  uint64    // reads are numbered from 1 as they begin; 0 is none
	at time.Time // the read includes every change before this time
}

// covers reports whether the read includes the changes until t, for a request made when next was the
// number of the next read. A read at exactly t must have begun after the request: two events can occur
// in one tick of the clock, and in virtual time most do (rule cache-3).
func (l read) covers(t time.Time, next uint64) bool {
	return l.at.After(t) || l.n >= next && !l.at.Before(t)
}

// A runtimeEvent is an event of the runtime: when it was received, and the number of the first read that
// can contain its change.
type runtimeEvent struct {
	n  uint64
	at time.Time
}

// A record is the cached state of one pod. Its size does not depend on how often the pod changed. Its
// methods have no side effects on the Generator, whose mu guards it.
//
//	list ──────────────┐             ┌── same as current: confirmed
//	                   ├─► listed ───┤
//	                   │             └── different: due ─► inspecting ─► current ─► followers
//	request, event ────┴── requested ────────── due ───────┘ ▲   │
//	                                                         └───┘ failed: due after a Period
type record struct {
	uid types.UID

	// Two states of the pod, each nil if the pod does not exist. They are the same pointer
	// while nothing changes. The state as last delivered is in the follower.
	listed  *runtime.Pod // as of the last read of any kind
	current *runtime.Pod // as of the last successful inspection

	status   *runtime.PodStatus // of current; nil if the pod does not exist
	err      error              // of the last inspection
	timedOut bool               // err is a timeout; the next inspection may hang as well
	retry    time.Time          // when a failed inspection is repeated, if nothing requests it before
	readBy   read               // the read that status or err is as recent as

	// listedBy is the last list that was applied. If it is later than readBy, it contained a
	// change and an inspection is due.
	listedBy read

	requested     uint64 // a read with this number or a later one is requested
	syncRequested uint64 // the same, to be followed by a PodSync event; 0: none

	syncPending bool // followers have to deliver a PodSync
	inspecting  bool
	queued      lanes // that contain the pod

	confirmedBy read         // the last read that contained current
	unanswered  runtimeEvent // first event that no successful read has answered; zero: none
	lastEvent   runtimeEvent // last event
	early       time.Time    // when a read answered an event without a change; zero: none since the last change
	cause       time.Time    // of the event that caused the change just found; zero: none

	// doubted: a list without the pod ended while an inspection that began later was in
	// progress. If the inspection finds the pod, either may be newer: the runtime may have
	// answered the inspection before the list. Another inspection decides.
	doubted bool

	pins        int       // calls of Pin in effect
	pinnedUntil time.Time // until when they, or those that ended just now, prevent an inspection

	// waiting counts the callers of GetNewerThan, which wait for the read with the number
	// wanted or a later one; wake is closed when readBy changes, and nil while there are no
	// waiters.
	waiting int
	wanted  uint64
	wake    chan struct{}
}

// list applies the entry of the pod in a list, nil if there is none, and reports whether there is a
// change or a reason to inspect the pod.
func (r *record) list(p *runtime.Pod, by read) bool {
	if by.n <= r.listedBy.n || by.n < r.readBy.n {
		return false // an inspection that began after the list has completed before it
	}
	r.listedBy = by
	if p == nil {
		r.listed = nil
		return r.remove(by)
	}
	if r.syncRequested == 0 && equal(r.current, p) {
		r.listed, r.readBy, r.confirmedBy = r.current, by, by
		return false
	}
	r.listed = p
	return true
}

// remove records that the pod does not exist, which needs no inspection (rule pleg-18), and reports
// whether that is a change.
func (r *record) remove(by read) bool {
	changed := r.current != nil || r.err != nil || r.syncRequested != 0
	r.current, r.status, r.err, r.timedOut, r.readBy, r.confirmedBy = nil, nil, nil, false, by, by
	r.doubted = r.inspecting
	r.answerSync(by)
	return changed
}

// inspected applies the result of an inspection.
func (r *record) inspected(status *runtime.PodStatus, err error, by read) {
	if by.n < r.readBy.n {
		return // a list that began later has confirmed or removed the pod
	}
	doubted := r.doubted
	r.doubted = false
	if doubted && err == nil && status.Pod() != nil {
		r.requested = by.n + 1
		return
	}
	r.readBy = by
	if err != nil {
		// listed and current stay, so that the next successful inspection has the same
		// events, or at least a PodSync (rule pleg-19).
		r.err = err
		if r.syncRequested == 0 {
			r.syncRequested = by.n
		}
		return
	}
	if r.current = status.Pod(); r.current == nil {
		status = nil
	} else {
		keepIPs(status, r.status)
	}
	r.status, r.err, r.confirmedBy = status, nil, by
	r.answerSync(by)
	if r.listedBy.n < by.n {
		r.listed = r.current
	} else if r.syncRequested == 0 && equal(r.listed, r.current) {
		r.listed, r.readBy, r.confirmedBy = r.current, r.listedBy, r.listedBy // confirmed meanwhile
	}
}

// answerSync marks a PodSync as pending if one was requested before the read.
func (r *record) answerSync(by read) {
	if r.syncRequested != 0 && r.syncRequested <= by.n {
		r.syncRequested, r.syncPending = 0, true
	}
}

// answeredBy returns the first event that the successful read by answers, zero if there is none, and
// whether no unanswered event is left.
func (r *record) answeredBy(by read) (first runtimeEvent, all bool) {
	if r.unanswered.n == 0 || by.n < r.unanswered.n {
		return runtimeEvent{}, false
	}
	first, r.unanswered = r.unanswered, runtimeEvent{}
	if by.n < r.lastEvent.n {
		r.unanswered = r.lastEvent
	}
	return first, r.unanswered.n == 0
}

// due reports whether an inspection is due: a later read was requested, or a list contained a change.
func (r *record) due() bool {
	return !r.inspecting && (r.readBy.n < r.requested || r.readBy.n < r.listedBy.n)
}

// failing reports whether the last inspection failed and none is in progress.
func (r *record) failing() bool { return r.err != nil && !r.inspecting }

// pinned reports whether a pin delays the inspection of the pod, and until when. A caller of
// GetNewerThan overrides it.
func (r *record) pinned() (until time.Time, ok bool) {
	if r.awaited() || !time.Now().Before(r.pinnedUntil) {
		return time.Time{}, false
	}
	return r.pinnedUntil, true
}

// awaited reports whether the next read is one that callers of GetNewerThan wait for.
func (r *record) awaited() bool { return r.readBy.n < r.wanted }

// pinUntil extends the pins to t.
func (r *record) pinUntil(t time.Time) {
	if t.After(r.pinnedUntil) {
		r.pinnedUntil = t
	}
}

// forgettable reports whether the record can be deleted: the pod does not exist, and there are no
// waiters and no requests. Followers have their own record of pending events.
func (r *record) forgettable() bool {
	return r.listed == nil && r.current == nil && r.err == nil && !r.inspecting && r.queued == 0 &&
		r.waiting == 0 && r.pins == 0 && r.syncRequested == 0 && r.readBy.n >= r.requested
}

// satisfies reports whether the record answers a request for a status newer than t that was made when
// next was the number of the next read. A cached error does not answer a later request; the pod is
// inspected again.
func (r *record) satisfies(t time.Time, next uint64) bool {
	if r.err != nil && r.readBy.n < next {
		return false
	}
	return r.readBy.covers(t, next)
}

// snapshot returns a copy of the status, whose slices are shared. Its ObservedAt is the time of the read
// that last confirmed it. It is never nil.
func (r *record) snapshot() *runtime.PodStatus {
	s := runtime.PodStatus{UID: r.uid}
	if r.status != nil {
		s = *r.status
	}
	s.ObservedAt = r.readBy.at
	return &s
}

// keepIPs copies the IPs of the previous status to one without IPs, unless a sandbox is ready and has
// none (rule pleg-23): a terminated pod is reported with the addresses that it had.
func keepIPs(status, before *runtime.PodStatus) {
	if before == nil || len(status.IPs) > 0 {
		return
	}
	for i := range status.Sandboxes {
		if status.Sandboxes[i].State == runtime.SandboxReady {
			return
		}
	}
	status.IPs = slices.Clone(before.IPs)
}

// checked validates the result of PodStatus for uid. A missing UID is set.
func checked(uid types.UID, status *runtime.PodStatus, err error) (*runtime.PodStatus, error) {
	switch {
	case err != nil:
		return nil, fmt.Errorf("pleg: inspect pod %s: %w", uid, err)
	case status == nil:
		return nil, fmt.Errorf("pleg: inspect pod %s: the runtime returned no status", uid)
	case status.UID == "":
		status.UID = uid
	case status.UID != uid:
		return nil, fmt.Errorf("pleg: inspect pod %s: the runtime returned pod %s", uid, status.UID)
	}
	return status, nil
}
