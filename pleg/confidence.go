package pleg

import "time"

// The states of the event confidence: whether the events of a runtime.Watcher announce all
// changes. It determines the period of lists: in all but confidenceTrusted the runtime is listed
// every Config.Period.
//
//	none ──┬─ stream open, no change was missed ─────────────────────► trusted
//	       │                                                            │ ▲ │
//	       └─ stream open, one was missed ──► unproven ── announced ────┼─┘ │
//	broken ┘                                   │  ▲    changes          │   │
//	   ▲                                       │  └─ a change was not ──┘   │
//	   │                                       │     announced              │
//	   └─────── stream broke ──────────────────┴────────────────────────────┘
const (
	// confidenceNone: the Runtime is no runtime.Watcher, or its stream has not opened yet.
	confidenceNone = "none"

	// confidenceBroken: the stream broke, or was closed because it was silent, and is being
	// opened again.
	confidenceBroken = "broken"

	// confidenceUnproven: the stream is open, but did not announce a change, and has not
	// announced enough changes since.
	confidenceUnproven = "unproven"

	// confidenceTrusted: the events announced all changes. The period doubles with each list
	// that finds no other change, up to Config.MaxPeriod.
	confidenceTrusted = "trusted"
)

// maxNeeded is the maximum of confidence.needed.
const maxNeeded = 1 << 10

// A confidence computes the event confidence from the changes that are found. It has no side
// effects; the Generator's mu guards it.
//
// An open stream is trusted until a change is found that it did not announce: on an idle node
// there are no changes to announce, and lists would cost work forever. A silent stream
// therefore delays one change, but not the next: after a missed change the period grows again
// only after events have announced changes, and each further missed one doubles how many. A
// stream that announces half of the changes is never trusted for long.
type confidence struct {
	min, max time.Duration // limits of period

	state  string
	period time.Duration // from the end of a list to the start of the next

	open      bool      // a Watch is in progress
	opened    time.Time // when it began
	lastEvent time.Time // the last event, or opened

	announcedCount int // announced changes since the last missed one
	needed         int // how many are required; 1: no change was missed recently
}

func newConfidence(min, max time.Duration) confidence {
	return confidence{min: min, max: max, state: confidenceNone, period: min, needed: 1}
}

// streamBegan records that a Watch was called. It may fail immediately; streamWorks is called when it
// has not.
func (t *confidence) streamBegan(now time.Time) {
	t.open, t.opened, t.lastEvent, t.announcedCount = true, now, now, 0
}

// streamEnded records that the Watch returned, or that the runtime does not support it.
func (t *confidence) streamEnded(into string) {
	t.open, t.state, t.period, t.announcedCount = false, into, t.min, 0
}

// eventReceived records an event.
func (t *confidence) eventReceived(now time.Time) {
	t.lastEvent = now
	t.streamWorks()
}

// streamWorks records that the stream is open.
func (t *confidence) streamWorks() {
	if !t.open || t.state != confidenceNone && t.state != confidenceBroken {
		return
	}
	if t.state = confidenceTrusted; t.needed > 1 {
		t.state = confidenceUnproven
	}
}

// covers reports whether an event must have announced a change that happened after since: a stream
// that is being opened may miss changes.
func (t *confidence) covers(since time.Time) bool {
	return t.open && since.Sub(t.opened) >= t.min
}

// announced records a change that an event announced.
func (t *confidence) announced() {
	t.announcedCount++
	if t.state == confidenceUnproven && t.announcedCount >= t.needed {
		t.state = confidenceTrusted
	}
}

// missed records a change that no event announced, and reports whether the events were
// trusted until now.
func (t *confidence) missed() bool {
	was := t.state == confidenceTrusted
	if was {
		t.state = confidenceUnproven
	}
	t.announcedCount, t.needed, t.period = 0, min(2*t.needed, maxNeeded), t.min
	return was
}

// due returns when a change that was found at a time counts as missed: after the shortest
// period; while other events arrive, as when many pods start at once, they may be late, and
// due waits for at most watchPauseMax.
func (t *confidence) missedAt(found time.Time) time.Time {
	due := found.Add(t.min)
	if backlog := t.lastEvent.Add(t.min); t.lastEvent.After(found) && backlog.After(due) {
		due = backlog
	}
	if last := found.Add(max(watchPauseMax, t.min)); due.After(last) {
		due = last
	}
	return due
}

// silent reports whether the stream has had no event for watchPauseMax, so that it should be
// opened again.
func (t *confidence) silent(now time.Time) bool {
	return t.open && now.Sub(t.lastEvent) >= watchPauseMax
}

// listed records a successful list; clean means that events announced all changes that it
// found.
func (t *confidence) listed(now time.Time, clean bool) {
	if t.open && now.Sub(t.opened) >= t.min {
		t.streamWorks()
	}
	if t.state != confidenceTrusted || !clean {
		return
	}
	if t.period = min(2*t.period, t.max); t.period == t.max {
		t.needed = max(1, t.needed/2) // missed changes of long ago do not count
	}
}
