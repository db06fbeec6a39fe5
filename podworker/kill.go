package podworker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// KillOptions configure the termination of a pod by the agent.
type KillOptions struct {
	// GracePeriodSeconds replaces spec.terminationGracePeriodSeconds, also with
	// a longer time, as in Kubernetes. It only shortens a grace period that is
	// in effect: deletionGracePeriodSeconds, or that of an earlier Kill. Values
	// below 1 count as 1. If nil, the pod's own grace period is used; for an
	// orphan that is Config.OrphanGrace, or the one that the runtime recorded.
	GracePeriodSeconds *int64

	// Evict: the pod's containers may be removed while its object stays, so
	// that their resources are free (pw-16).
	Evict bool

	// Ending is what the pod's status will say.
	Ending runtime.Termination

	// Patience is how long KillAndWait waits. Zero means 1.5 times the grace
	// period: GracePeriodSeconds, or that of the spec; at least 10 seconds
	// (pw-60).
	Patience time.Duration
}

// An Outcome is how a Kill went (L-21).
type Outcome int

// The outcomes of a Kill. In all but the last nothing of the pod runs.
const (
	Stopped        Outcome = iota + 1 // the pod ran, and has stopped
	AlreadyStopped                    // it had stopped before the Kill
	NeverStarted                      // it was waiting for its turn, and will not start; its status says why
	NotKnown                          // there is no such pod here
	Abandoned                         // Run has ended first; the pod may run on
)

// String returns the outcome in words: "already stopped".
func (o Outcome) String() string {
	switch o {
	case Stopped:
		return "stopped"
	case AlreadyStopped:
		return "already stopped"
	case NeverStarted:
		return "never started"
	case NotKnown:
		return "not known"
	case Abandoned:
		return "abandoned"
	default:
		return "none"
	}
}

// Why a pod is terminated, in words that fit after "because".
const (
	CauseDeleted Cause = "its deletion was asked for" // the object has a deletionTimestamp
	CauseRemoved Cause = "no source wants it any more"
	CauseEnded   Cause = "it has come to its end" // run to it, refused, past its deadline: see Reason
	CauseKilled  Cause = "the agent ends it"      // see Ending
	CauseOrphan  Cause = "only the runtime knows it"
)

// A Cause is why the termination of a pod was first requested. Empty: it was
// not.
type Cause string

// ErrStillRunning is what KillAndWait returns (wrapped) when the pod has not
// stopped in time. The kill goes on.
var ErrStillRunning = errors.New("timeout waiting to kill pod")

// Kill ends the pod for a reason of the agent's own (eviction, preemption,
// shutdown). The outcome is sent once, when nothing of the pod runs any more,
// at once if that is so already or the pod is unknown (lq-6), and then the
// channel is closed. Nobody has to receive it.
//
// It ends all that was wanted of the pod before it, also the life after the
// present one, of a pod that was removed and is wanted anew: that is cleaned up
// with the same Ending, and starts nothing. What is wanted after the Kill
// starts. So of a set of pods that sources don't change any more nothing runs
// when all have been killed.
func (w *Workers) Kill(uid types.UID, opts KillOptions) <-chan Outcome {
	done := make(chan Outcome, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.pods[uid]
	switch {
	case !ok:
		tell(done, NotKnown)
	case w.ended:
		tell(done, Abandoned)
	default:
		p.done = append(p.done, done)
		w.stepLocked(p, killed{opts})
	}
	return done
}

func tell(done chan<- Outcome, o Outcome) {
	done <- o
	close(done)
}

// KillAndWait is Kill for callers that need the pod's resources. It returns nil
// only if nothing of the pod runs: the outcome is Stopped, AlreadyStopped or
// NeverStarted. Else the pod must be counted as running, and the error names the
// outcome, NotKnown or Abandoned.
//
// It returns ErrStillRunning (wrapped) and records an event if the pod has not
// stopped within opts.Patience, and an error that wraps ctx.Err() if ctx is done
// before. In these two cases the outcome is zero and the kill continues (pw-59 …
// pw-61).
func (w *Workers) KillAndWait(ctx context.Context, uid types.UID, opts KillOptions) (Outcome, error) {
	pod := w.podOf(uid)
	if opts.Patience == 0 {
		opts.Patience = patience(pod, opts.GracePeriodSeconds)
	}
	late := time.NewTimer(opts.Patience)
	defer late.Stop()
	select {
	case o := <-w.Kill(uid, opts):
		if o == NotKnown || o == Abandoned {
			return o, fmt.Errorf("podworker: kill pod %s: %v", uid, o)
		}
		return o, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("podworker: kill pod %s: %w", uid, ctx.Err())
	case <-late.C:
		if pod != nil {
			w.cfg.Record(runtime.Event{
				Object: runtime.PodRef(pod), Type: v1.EventTypeWarning, Reason: "ExceededGracePeriod",
				Message: "Container runtime did not kill the pod within specified grace period.",
			})
		}
		return 0, &stillRunning{uid, opts.Patience}
	}
}

// stillRunning says which pod it is, and is ErrStillRunning.
type stillRunning struct {
	uid    types.UID
	waited time.Duration
}

func (e *stillRunning) Error() string {
	return "podworker: " + ErrStillRunning.Error() + " " + string(e.uid) + " (" + e.waited.String() + ")"
}

func (e *stillRunning) Unwrap() error { return ErrStillRunning }

// patience returns how long the kubelet waits for a pod that it kills (pw-60).
func patience(pod *v1.Pod, override *int64) time.Duration {
	grace := override
	if grace == nil && pod != nil {
		grace = pod.Spec.TerminationGracePeriodSeconds
	}
	if grace == nil {
		return 10 * time.Second
	}
	const perSecond = 1500 * time.Millisecond
	if *grace > int64(math.MaxInt64/perSecond) {
		return math.MaxInt64
	}
	return max(10*time.Second, time.Duration(*grace)*perSecond)
}

func (w *Workers) podOf(uid types.UID) *v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.pods[uid]; ok {
		return p.life.pod
	}
	return nil
}

// KillOrphan terminates a pod that the runtime contains and no source specifies,
// with Config.OrphanGrace (sl-56). It does nothing if the pod has a worker.
func (w *Workers) KillOrphan(orphan *runtime.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, first := w.workerLocked(orphan.UID); first {
		w.stepLocked(p, found{orphan, w.cfg.OrphanGrace})
	}
}
