package prober

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A probedPod is a pod with probes. The Manager's mu guards it.
type probedPod struct {
	uid     types.UID
	pod     *v1.Pod
	ip      string    // as of the last inspection
	workers []*worker // by container, startup before the others

	terminating bool // StopLiveness was called
	removed     bool // Remove was called, or it has no probes any more
	queued      bool // it is in Manager.queue
}

// A worker is one probe of one container. It has a goroutine only during an attempt. The
// Manager's mu guards it.
type worker struct {
	pod       *probedPod
	container *v1.Container // of pod.pod
	kind      Kind
	probe     *v1.Probe // of container
	timing    Timing

	state   state
	started *worker // the startup probe of the container, nil if there is none
	removed bool

	// slot is the time of the next attempt by the period, wake that time with jitter, or,
	// for a worker that is not probing, the time of its next inspection.
	slot, wake time.Time
	index      int // in the timers, -1 if it has no timer

	// fresh is true until the first attempt on this instance is scheduled.
	fresh bool

	// ran is true if there was an attempt on this instance.
	ran bool

	// errs is true if the last attempt could not be carried out.
	errs bool

	// spread is true if the first attempt on this instance was not distributed at random,
	// so that the second one must be.
	spread bool

	turn    turn
	command bool               // queued or running as an exec probe
	again   bool               // Trigger was called while it was queued or running
	since   time.Time          // when the queued or running attempt was due
	cancel  context.CancelFunc // cancels the running attempt
	history []Attempt
}

// turn is the progress of a worker's attempt.
type turn uint8

const (
	resting turn = iota // not due
	waiting             // in a queue of the budget
	running
)

// begin schedules the first attempt on an instance. Readiness is probed after the initial
// delay. All other first attempts are distributed at random over a period, as in the kubelet,
// whose ticker is not synchronized with the container (rule prober-6); after a restart of the
// agent this prevents probes of all containers at the same time.
func (w *worker) begin(now, startedAt, made time.Time, rand func() float64) {
	w.fresh, w.again, w.ran = false, false, false
	if startedAt.IsZero() || startedAt.After(now) {
		startedAt = now // unknown, or the clock was set back
	}
	first := startedAt.Add(w.timing.InitialDelay)
	if first.Before(now) {
		first = now
	}
	w.spread = w.kind == Readiness && !startedAt.Before(made)
	if !w.spread {
		first = first.Add(time.Duration(rand() * float64(w.timing.Period)))
	}
	w.slot, w.wake = first, first
}

// next schedules the attempt after this one: a period after it was due, plus the jitter, or now
// if that has passed. Delays do not accumulate.
func (w *worker) next(now time.Time, jitter float64, rand func() float64) {
	period := float64(w.timing.Period)
	switch {
	case w.again:
		w.again, w.slot, w.wake = false, now, now
		return
	case w.spread: // at most a period later
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

// passed reports whether the instance has no startup probe or has passed it.
func (w *worker) passed(id string) bool {
	s := w.started
	return s == nil || s.state.id == id && s.state.hasResult && s.state.result == runtime.ProbeSuccess
}

// cancelAttempt cancels the queued or running attempt.
func (w *worker) cancelAttempt() {
	if w.cancel != nil {
		w.cancel()
	}
	if w.turn == waiting {
		w.turn = resting
	}
}

// inspectPeriod is the interval between inspections of a container that is not probed.
func (w *worker) inspectPeriod() time.Duration {
	return min(max(w.timing.Period, time.Second), 10*time.Second)
}
