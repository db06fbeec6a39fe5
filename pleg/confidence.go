package pleg

import "time"

// HintState is the event confidence: whether the events of a runtime.Watcher announce all
// changes. It determines the period of lists.
//
//	none ──┬─ stream open, no change was missed ─────────────────────► trusted
//	       │                                                            │ ▲ │
//	       └─ stream open, one was missed ──► unproven ── announced ────┼─┘ │
//	broken ┘                                   │  ▲    changes          │   │
//	   ▲                                       │  └─ a change was not ──┘   │
//	   │                                       │     announced              │
//	   └─────── stream broke ──────────────────┴────────────────────────────┘
type HintState string

// The states of the event confidence. In all but HintsTrusted the runtime is listed every
// Config.Period.
const (
	// HintsNone: the Runtime is no runtime.Watcher, or its stream has not opened yet.
	HintsNone HintState = "none"

	// HintsBroken: the stream broke, or was closed because it was silent, and is being
	// opened again.
	HintsBroken HintState = "broken"

	// HintsUnproven: the stream is open, but did not announce a change, and has not
	// announced enough changes since.
	HintsUnproven HintState = "unproven"

	// HintsTrusted: the events announced all changes. The period doubles with each list
	// that finds no other change, up to Config.MaxPeriod.
	HintsTrusted HintState = "trusted"
)

// neededMost is the maximum of confidence.needed.
const neededMost = 1 << 10

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

	state  HintState
	period time.Duration // from the end of a list to the start of the next

	open   bool      // a Watch is in progress
	opened time.Time // when it began
	heard  time.Time // the last event, or opened

	row    int // announced changes since the last missed one
	needed int // how many are required; 1: no change was missed recently
}

func newConfidence(min, max time.Duration) confidence {
	return confidence{min: min, max: max, state: HintsNone, period: min, needed: 1}
}

// opens records that a Watch begins. It may fail at once; holds is called when it has not.
func (t *confidence) opens(now time.Time) {
	t.open, t.opened, t.heard, t.row = true, now, now, 0
}

// breaks records that the Watch ended, or that the runtime has none.
func (t *confidence) breaks(into HintState) {
	t.open, t.state, t.period, t.row = false, into, t.min, 0
}

// hears records an event.
func (t *confidence) hears(now time.Time) {
	t.heard = now
	t.holds()
}

// holds records that the stream is open.
func (t *confidence) holds() {
	if !t.open || t.state != HintsNone && t.state != HintsBroken {
		return
	}
	if t.state = HintsTrusted; t.needed > 1 {
		t.state = HintsUnproven
	}
}

// judges reports whether a change that happened after since would have been
// announced: a stream that is just being opened misses some.
func (t *confidence) judges(since time.Time) bool {
	return t.open && since.Sub(t.opened) >= t.min
}

// announced records a change that an event announced.
func (t *confidence) announced() {
	t.row++
	if t.state == HintsUnproven && t.row >= t.needed {
		t.state = HintsTrusted
	}
}

// missed records a change that no event announced, and reports whether the events were
// trusted until now.
func (t *confidence) missed() bool {
	was := t.state == HintsTrusted
	if was {
		t.state = HintsUnproven
	}
	t.row, t.needed, t.period = 0, min(2*t.needed, neededMost), t.min
	return was
}

// due returns when a change that was found at a time counts as missed: after the shortest
// period; while other events arrive, as when many pods start at once, they may be late, and
// due waits for at most watchPauseMax.
func (t *confidence) due(found time.Time) time.Time {
	due := found.Add(t.min)
	if backlog := t.heard.Add(t.min); t.heard.After(found) && backlog.After(due) {
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
	return t.open && now.Sub(t.heard) >= watchPauseMax
}

// listed records a successful list; clean means that events announced all changes that it
// found.
func (t *confidence) listed(now time.Time, clean bool) {
	if t.open && now.Sub(t.opened) >= t.min {
		t.holds()
	}
	if t.state != HintsTrusted || !clean {
		return
	}
	if t.period = min(2*t.period, t.max); t.period == t.max {
		t.needed = max(1, t.needed/2) // missed changes of long ago do not count
	}
}
