package pleg

import "time"

// Confidence is the event confidence: whether the events of a runtime.Watcher announce all
// changes. It determines the period of lists: in all but ConfidenceTrusted the runtime is listed
// every Config.Period.
//
//	none ──┬─ stream open, no change was missed ─────────────────────► trusted
//	       │                                                            │ ▲ │
//	       └─ stream open, one was missed ──► unproven ── announced ────┼─┘ │
//	broken ┘                                   │  ▲    changes, or      │   │
//	   ▲                                       │  │    a quiet time     │   │
//	   │                                       │  └─ a change was not ──┘   │
//	   │                                       │     announced              │
//	   └─────── stream broke ──────────────────┴────────────────────────────┘
type Confidence string

// The states of the event confidence. A Generator begins with ConfidenceNone.
const (
	// ConfidenceNone: the Runtime is no runtime.Watcher, or its stream has not opened yet.
	ConfidenceNone Confidence = "none"

	// ConfidenceBroken: the stream broke, or was closed because it was silent, and is being
	// opened again.
	ConfidenceBroken Confidence = "broken"

	// ConfidenceUnproven: the stream is open, but did not announce a change, and since then
	// neither announced enough changes nor was the node quiet for long enough.
	ConfidenceUnproven Confidence = "unproven"

	// ConfidenceTrusted: the events announced all changes. The period is Config.MaxPeriod.
	ConfidenceTrusted Confidence = "trusted"
)

const (
	// maxNeeded is the maximum of confidence.needed.
	maxNeeded = 1 << 10

	// maxQuiet is the maximum of confidence.quiet, as a multiple of Config.MaxPeriod.
	maxQuiet = 12

	// eventDelay is how late the event of a change may be. Other events that arrive meanwhile
	// extend it to eventBacklog, as when many pods start at once.
	eventDelay   = 5 * time.Second
	eventBacklog = 30 * time.Second

	// settleDelay is how long after a change the runtime is listed, so that an event that was
	// lost among others is noticed soon.
	settleDelay = 30 * time.Second
)

// A confidence computes the event confidence from the changes that are found. It has no side
// effects; the Generator's mu guards it.
//
// An open stream is trusted until a change is found that it did not announce: on an idle node
// there are no changes to announce, and lists would cost work forever. A silent stream
// therefore delays one change, but not the next: after a missed change the stream is trusted
// again only after its events have announced changes, or after a time without any change, and
// each further missed one doubles how many and how long. A stream that announces half of the
// changes is never trusted for long.
type confidence struct {
	min, max time.Duration // limits of period

	state Confidence

	open    bool      // a Watch is in progress
	opened  time.Time // when it began
	covered bool      // a list has succeeded that began since then

	lastEvent  time.Time // the last event, or opened
	lastChange time.Time // the last change that was found, or the last missed one
	halved     time.Time // when needed was last changed

	announcedCount int // announced changes since the last missed one
	needed         int // how many are required; 1: no change was missed recently
}

func newConfidence(min, max time.Duration) confidence {
	return confidence{min: min, max: max, state: ConfidenceNone, needed: 1}
}

// period returns the time from the end of a list to the start of the next. Changes from before the
// stream was open have no events, so it is short until a list includes them.
func (t *confidence) period() time.Duration {
	if t.state == ConfidenceTrusted && t.covered {
		return t.max
	}
	return t.min
}

// streamBegan records that a Watch was called. It may fail immediately; streamWorks is called when it
// has not.
func (t *confidence) streamBegan(now time.Time) {
	t.open, t.covered, t.opened, t.lastEvent, t.announcedCount = true, false, now, now, 0
}

// streamEnded records that the Watch returned, or that the runtime does not support it.
func (t *confidence) streamEnded(into Confidence) {
	t.open, t.covered, t.state, t.announcedCount = false, false, into, 0
}

// eventReceived records an event.
func (t *confidence) eventReceived(now time.Time) {
	t.lastEvent = now
	t.streamWorks()
}

// streamWorks records that the stream is open.
func (t *confidence) streamWorks() {
	if !t.open || t.state != ConfidenceNone && t.state != ConfidenceBroken {
		return
	}
	if t.state = ConfidenceTrusted; t.needed > 1 {
		t.state = ConfidenceUnproven
	}
}

// covers reports whether an event must have announced a change that happened after since: a stream
// that is being opened may miss changes.
func (t *confidence) covers(since time.Time) bool {
	return t.open && since.Sub(t.opened) >= t.min
}

// announced records a change that an event announced.
func (t *confidence) announced(now time.Time) {
	t.announcedCount++
	t.lastChange = now
	if t.state == ConfidenceUnproven && t.announcedCount >= t.needed {
		t.state = ConfidenceTrusted
	}
}

// missed records a change that no event announced, and reports whether the events were
// trusted until now.
func (t *confidence) missed(now time.Time) bool {
	was := t.state == ConfidenceTrusted
	if was {
		t.state = ConfidenceUnproven
	}
	t.announcedCount, t.needed, t.lastChange, t.halved = 0, min(2*t.needed, maxNeeded), now, now
	return was
}

// missedAt returns when a change that was found at a time counts as missed.
func (t *confidence) missedAt(found time.Time) time.Time {
	delay := max(eventDelay, t.min)
	due := found.Add(delay)
	if backlog := t.lastEvent.Add(delay); t.lastEvent.After(found) && backlog.After(due) {
		due = backlog
	}
	if last := found.Add(max(eventBacklog, t.min)); due.After(last) {
		due = last
	}
	return due
}

// silent reports whether the stream has had no event for watchPauseMax, so that it should be
// opened again.
func (t *confidence) silent(now time.Time) bool {
	return t.open && now.Sub(t.lastEvent) >= watchPauseMax
}

// quiet returns how long the node must have no changes for the stream to be trusted without
// announced ones: Config.MaxPeriod after the first missed change.
func (t *confidence) quiet() time.Duration {
	return min(time.Duration(t.needed)*t.max/2, maxQuiet*t.max)
}

// listed records a successful list that began at a time; clean means that events announced all
// changes that it found.
func (t *confidence) listed(began, now time.Time, clean bool) {
	if t.covers(began) {
		t.covered = true
		t.streamWorks()
	}
	switch {
	case !clean:
	case t.state == ConfidenceUnproven && now.Sub(t.lastChange) >= t.quiet():
		t.state = ConfidenceTrusted
	case t.state == ConfidenceTrusted && now.Sub(t.halved) >= t.max:
		t.needed, t.halved = max(1, t.needed/2), now // missed changes of long ago do not count
	}
}
