package prober

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// watched is a pod that is probed. The Manager's mu guards it.
type watched struct {
	uid     types.UID
	pod     *v1.Pod
	ip      string    // as last seen
	workers []*worker // by container, startup before the others (prober-3)

	ending bool // StopLiveness was called
	gone   bool // Remove was called, or it has no probes any more
	looked bool // it stands in the Manager's looks
}

// A worker is one probe of one container (prober-1). It has no goroutine but
// while it runs. The Manager's mu guards it.
type worker struct {
	of        *watched
	container *v1.Container // of of.pod
	kind      Kind
	probe     *v1.Probe // of container
	timing    Timing

	state   state
	started *worker // the startup probe of the container, nil if there is none
	gone    bool

	// slot is when the run that comes next is due by the period, wake when it
	// is made, or, for one that isn't probing, when to look at it again.
	slot, wake time.Time
	place      int // in the timers, -1 if it isn't in there

	// fresh: it has not found the time of the first run of this instance yet.
	fresh bool

	// ran: there was a run on this instance.
	ran bool

	// errs: the last run could not be carried out.
	errs bool

	// spread: the first run of this instance was made at once, so the next one
	// finds a place among those of others.
	spread bool

	turn    turn
	command bool               // it has its turn as an exec probe
	again   bool               // Trigger was called while it had its turn
	since   time.Time          // when the run that has its turn was due
	cancel  context.CancelFunc // ends the run under way
	history []Attempt
}

// turn is how far a worker whose time has come has got.
type turn uint8

const (
	resting turn = iota // its time has not come
	waiting             // for others to end: it is in a queue
	running
)

// begin finds the time of the first run of an instance. Those who wait for a
// container to be ready wait for no more than its initial delay. All other first
// runs are anywhere in a period: so are those of the kubelet, which looks at
// a new container when its ticker fires, and after a restart of the agent it keeps
// all its containers from being probed at once (prober-6).
func (w *worker) begin(now, startedAt, made time.Time, rand func() float64) {
	w.fresh, w.again, w.ran = false, false, false
	if startedAt.IsZero() || startedAt.After(now) {
		startedAt = now // nobody said, or the clock was set back since
	}
	first := startedAt.Add(w.timing.InitialDelay) // prober-19
	if first.Before(now) {
		first = now
	}
	w.spread = w.kind == Readiness && !startedAt.Before(made)
	if !w.spread {
		first = first.Add(time.Duration(rand() * float64(w.timing.Period)))
	}
	w.slot, w.wake = first, first
}

// next finds the time of the run after this one: a period after it was due
// (prober-7), give or take the jitter. One that took longer than that is
// followed at once. Since when it was due counts, being late does not add up.
func (w *worker) next(now time.Time, jitter float64, rand func() float64) {
	period := float64(w.timing.Period)
	switch {
	case w.again: // prober-8
		w.again, w.slot, w.wake = false, now, now
		return
	case w.spread: // at most a period: who fails only now is not kept waiting
		w.spread = false
		w.slot = w.slot.Add(time.Duration((1 - rand()) * period))
	default:
		w.slot = w.slot.Add(w.timing.Period)
	}
	if w.slot.Before(now) {
		w.slot = now
	}
	w.wake = w.slot.Add(time.Duration(jitter * rand() * period))
}

// passed reports whether the instance has started, as far as startup probes
// have a say in it (prober-67).
func (w *worker) passed(id string) bool {
	s := w.started
	return s == nil || s.state.id == id && s.state.known && s.state.result == runtime.ProbeSuccess
}

// callOff ends the turn of w: nobody wants its outcome any more.
func (w *worker) callOff() {
	if w.cancel != nil {
		w.cancel()
	}
	if w.turn == waiting {
		w.turn = resting
	}
}

// idleFor is how long after one look at a container that isn't probed the next
// one comes, if nobody says earlier that there is something to see.
func (w *worker) idleFor() time.Duration {
	return min(max(w.timing.Period, time.Second), 10*time.Second)
}
