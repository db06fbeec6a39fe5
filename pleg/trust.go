package pleg

import "time"

// HintState says what the hints of a runtime.Watcher are worth at the moment,
// and so how often there is a list.
//
//	none ──┬─ the stream holds, and has missed no change ────────────► trusted
//	       │                                                            │ ▲ │
//	       └─ it holds, and has missed one ─► unproven ── announced ────┼─┘ │
//	broken ┘                                   │  ▲    changes          │   │
//	   ▲                                       │  └─ a change was not ──┘   │
//	   │                                       │     announced              │
//	   └─────── it broke ──────────────────────┴────────────────────────────┘
type HintState string

// The states of hints. In all but the last there is a list every
// Config.Period.
const (
	// HintsNone: the Runtime gives no hints, or has given none yet.
	HintsNone HintState = "none"

	// HintsBroken: their stream broke, or went silent, and is opened again
	// and again.
	HintsBroken HintState = "broken"

	// HintsUnproven: their stream holds, but has missed a change and has yet to
	// announce those that are found.
	HintsUnproven HintState = "unproven"

	// HintsTrusted: they announced what changed, if anything did. The period
	// doubles with each list that finds nothing else, up to Config.MaxPeriod.
	HintsTrusted HintState = "trusted"
)

// neededMost is the most that a trust can cost.
const neededMost = 1 << 10

// A trust is the judgement on the hints: what the changes that are found say
// of them. It decides and does nothing else; the Generator's mu guards it.
//
// A stream that holds is trusted until a change is found that it did not
// announce: on a quiet node there is nothing that it could announce, and lists
// would cost work for ever. A silent stream therefore delays one change, but
// not the next: after a change that was missed the period grows again only
// after hints came true, and each further one makes the proof twice as long.
// A stream that announces half of the changes is never trusted for long.
type trust struct {
	min, max time.Duration // limits of period

	state  HintState
	period time.Duration // from the end of a list to the start of the next

	open   bool      // a Watch is under way
	opened time.Time // since then
	heard  time.Time // the last hint, or opened

	row    int // changes that hints announced, since one that none did
	needed int // how many it takes; 1: no change was missed, or long ago
}

func newTrust(min, max time.Duration) trust {
	return trust{min: min, max: max, state: HintsNone, period: min, needed: 1}
}

// opens notes that a Watch begins. It may fail at once: that it holds is seen
// later.
func (t *trust) opens(now time.Time) {
	t.open, t.opened, t.heard, t.row = true, now, now, 0
}

// breaks notes that the Watch ended, or that the runtime has none.
func (t *trust) breaks(into HintState) {
	t.open, t.state, t.period, t.row = false, into, t.min, 0
}

// hears notes a hint.
func (t *trust) hears(now time.Time) {
	t.heard = now
	t.holds()
}

// holds notes that there is a stream.
func (t *trust) holds() {
	if !t.open || t.state != HintsNone && t.state != HintsBroken {
		return
	}
	if t.state = HintsTrusted; t.needed > 1 {
		t.state = HintsUnproven
	}
}

// judges reports whether a change that happened after since would have been
// announced: a stream that is just being opened misses some.
func (t *trust) judges(since time.Time) bool {
	return t.open && since.Sub(t.opened) >= t.min
}

// announced notes a change that a hint was given for.
func (t *trust) announced() {
	t.row++
	if t.state == HintsUnproven && t.row >= t.needed {
		t.state = HintsTrusted
	}
}

// missed notes a change that no hint was given for, and reports whether the
// hints were trusted until now.
func (t *trust) missed() bool {
	was := t.state == HintsTrusted
	if was {
		t.state = HintsUnproven
	}
	t.row, t.needed, t.period = 0, min(2*t.needed, neededMost), t.min
	return was
}

// due returns when a change that was found at a time counts as unannounced: after the
// shortest period; while hints keep coming, as when many pods start at once, they may have
// a backlog, for which at most watchPauseMax is waited.
func (t *trust) due(found time.Time) time.Time {
	due := found.Add(t.min)
	if backlog := t.heard.Add(t.min); t.heard.After(found) && backlog.After(due) {
		due = backlog
	}
	if last := found.Add(max(watchPauseMax, t.min)); due.After(last) {
		due = last
	}
	return due
}

// silent reports whether the stream gives nothing at all: better a new one.
func (t *trust) silent(now time.Time) bool {
	return t.open && now.Sub(t.heard) >= watchPauseMax
}

// listed notes a good list; clean means that all changes it knows of were
// announced.
func (t *trust) listed(now time.Time, clean bool) {
	if t.open && now.Sub(t.opened) >= t.min {
		t.holds()
	}
	if t.state != HintsTrusted || !clean {
		return
	}
	if t.period = min(2*t.period, t.max); t.period == t.max {
		t.needed = max(1, t.needed/2) // what is long past is forgiven
	}
}
