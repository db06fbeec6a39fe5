package pleg

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A look is one read of the runtime, a list or an inspection. Both fields are
// taken together, before the read begins (pleg-13).
type look struct {
	n  uint64    // looks are numbered as they begin, from 1; 0 is none
	at time.Time // whatever happened before this is seen
}

// covers reports whether a read shows what happened until t, asked by somebody
// when the next look was to have the number next. At exactly t, only a look
// that began after the asking will do: two things can happen in one tick of
// the clock, and in a test's virtual time most do (cache-3).
func (l look) covers(t time.Time, next uint64) bool {
	return l.at.After(t) || l.n >= next && !l.at.Before(t)
}

// A mark is a hint: when it came, and the number of the first look that can
// show what it was about.
type mark struct {
	n  uint64
	at time.Time
}

// A record is all that is known of one pod, and all that is kept: its size
// does not depend on how often the pod changed. Its methods decide and do
// nothing else; the Generator's mu guards it.
//
//	list ──────────────┐             ┌── same as current: confirmed
//	                   ├─► listed ───┤
//	                   │             └── different: due ─► inspecting ─► current ─► followers
//	request, hint ─────┴── ask ──────────────── due ───────┘ ▲   │
//	                                                         └───┘ failed: due after a Period
type record struct {
	uid types.UID

	// Two views of the pod, each nil if there is nothing of it. They are the
	// same value while nothing happens. A third, what was told of it, is a
	// follower's.
	listed  *runtime.Pod // the newest look of any kind
	current *runtime.Pod // the newest good inspection, status in brief

	status *runtime.PodStatus // in full, nil if there is nothing of the pod
	err    error              // of the newest inspection
	late   bool               // err is that it timed out: the pod may hang again
	retry  time.Time          // after err, not inspected again before this without a reason
	seen   look               // status or err are as fresh as this

	// listedBy is the newest list that was taken in. Ahead of seen: that list
	// showed something which wants an inspection.
	listedBy look

	ask  uint64 // a look of this number or a later one is asked for
	sync uint64 // the same, and wants a PodSync event; 0 if it does not

	synced     bool // a PodSync was earned, for the followers to take note of
	inspecting bool
	queued     lanes // where it waits for inspection

	good  look      // the newest look that showed current
	asked mark      // first hint that no good look has answered; zero: none
	last  mark      // newest hint
	led   time.Time // the hint that led to the change just found, for the followers

	pins        int       // calls of Pin in effect
	pinnedUntil time.Time // and until when that keeps it from being inspected

	// waiting counts the callers of GetNewerThan; wake is closed when seen
	// moves on, and nil while nobody waits.
	waiting int
	wake    chan struct{}
}

// list takes in what a list shows of the pod (nil: nothing), and reports
// whether that is news: a change, or a reason to inspect.
func (r *record) list(p *runtime.Pod, by look) bool {
	if by.n <= r.listedBy.n || by.n < r.seen.n {
		return false // an inspection that began after this list has ended before it
	}
	r.listedBy = by
	if p == nil {
		r.listed = nil
		return r.gone(by)
	}
	if r.sync == 0 && same(r.current, p) {
		r.listed, r.seen, r.good = r.current, by, by
		if r.asked.n != 0 {
			r.heeded(by)
		}
		return false
	}
	r.listed = p
	return true
}

// gone notes that nothing of the pod is left, which needs no inspection
// (pleg-18), and reports whether that is news.
func (r *record) gone(by look) bool {
	news := r.current != nil || r.err != nil || r.sync != 0
	r.current, r.status, r.err, r.late, r.seen, r.good = nil, nil, nil, false, by, by
	r.answered(by)
	return news
}

// inspected takes in what an inspection found.
func (r *record) inspected(status *runtime.PodStatus, err error, by look) {
	if by.n < r.seen.n {
		return // a list that began later has confirmed or ended the pod
	}
	r.seen = by
	if err != nil {
		// The views stay, so that the same events come of the next
		// inspection that works, or at least a PodSync (pleg-19).
		r.err = err
		if r.sync == 0 {
			r.sync = by.n
		}
		return
	}
	if r.current = status.Pod(); r.current == nil {
		status = nil
	} else {
		keepIPs(status, r.status)
	}
	r.status, r.err, r.good = status, nil, by
	r.answered(by)
	if r.listedBy.n < by.n {
		r.listed = r.current
	} else if r.sync == 0 && same(r.listed, r.current) {
		r.listed, r.seen, r.good = r.current, r.listedBy, r.listedBy // confirmed meanwhile
	}
}

// answered owes a PodSync if one was asked for before the look.
func (r *record) answered(by look) {
	if r.sync != 0 && r.sync <= by.n {
		r.sync, r.synced = 0, true
	}
}

// heeded returns the first hint that the good look by is the answer to, if
// there is one, and whether none is left.
func (r *record) heeded(by look) (first mark, all bool) {
	if r.asked.n == 0 || by.n < r.asked.n {
		return mark{}, false
	}
	first, r.asked = r.asked, mark{}
	if by.n < r.last.n {
		r.asked = r.last
	}
	return first, r.asked.n == 0
}

// due reports whether the pod should be inspected: somebody asked for a later
// look, or a list did.
func (r *record) due() bool {
	return !r.inspecting && (r.seen.n < r.ask || r.seen.n < r.listedBy.n)
}

// failing reports whether the pod could not be inspected and is not being.
func (r *record) failing() bool { return r.err != nil && !r.inspecting }

// rests reports whether the pod is held, so that it is not inspected although
// it is due, and until when. Whoever waits for its status ends that.
func (r *record) rests() (until time.Time, held bool) {
	if r.pins == 0 || r.waiting > 0 || !time.Now().Before(r.pinnedUntil) {
		return time.Time{}, false
	}
	return r.pinnedUntil, true
}

// forgettable reports whether dropping the record loses nothing: there is
// nothing of the pod, and nobody waits for it or asked for it. What followers
// are owed, they know themselves.
func (r *record) forgettable() bool {
	return r.listed == nil && r.current == nil && r.err == nil && !r.inspecting && r.queued == 0 &&
		r.waiting == 0 && r.pins == 0 && r.sync == 0 && r.seen.n >= r.ask
}

// answers reports whether the record can answer somebody who asked for what is
// newer than t when the next look was to have the number next. An error in the
// cache is no answer to a later question: the pod is tried again.
func (r *record) answers(t time.Time, next uint64) bool {
	if r.err != nil && r.seen.n < next {
		return false
	}
	return r.seen.covers(t, next)
}

// snapshot returns the status as callers get it: one of their own, whose
// slices are shared, and whose ObservedAt is that of the look which last
// confirmed it. Never nil.
func (r *record) snapshot() *runtime.PodStatus {
	s := runtime.PodStatus{UID: r.uid}
	if r.status != nil {
		s = *r.status
	}
	s.ObservedAt = r.seen.at
	return &s
}

// keepIPs lets a status without IPs keep those of the one before, unless one
// of its sandboxes is ready and so is known to have none (pleg-23): a pod that
// ends is reported with the address that it had.
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

// checked returns the answer of PodStatus if it is one for uid. A missing UID
// is filled in.
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
