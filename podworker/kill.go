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

	// Evict allows the containers of the pod to be removed while its object
	// exists, so that their resources are free.
	Evict bool

	// Termination is the reason in the pod's status.
	Termination runtime.Termination

	// Timeout is how long KillAndWait waits. Zero means 1.5 times the grace
	// period (GracePeriodSeconds, or that of the spec), at least 10 seconds.
	Timeout time.Duration
}

// An Outcome is the result of a Kill.
type Outcome int

// The outcomes of a Kill. No container of the pod runs, except after Abandoned.
const (
	Stopped        Outcome = iota + 1 // the containers have terminated
	AlreadyStopped                    // they had terminated before the Kill
	NeverStarted                      // the pod was Waiting and will not start; its status contains the reason
	NotFound                          // the pod has no worker
	Abandoned                         // Run has returned first; containers may run
)

// String returns the outcome in lower case: "already stopped".
func (o Outcome) String() string {
	switch o {
	case Stopped:
		return "stopped"
	case AlreadyStopped:
		return "already stopped"
	case NeverStarted:
		return "never started"
	case NotFound:
		return "not found"
	case Abandoned:
		return "abandoned"
	default:
		return "none"
	}
}

// ErrStillRunning is wrapped by the error of KillAndWait if the pod has not terminated in
// time. It continues to terminate.
var ErrStillRunning = errors.New("timeout waiting to kill pod")

// Kill terminates the pod for a reason of the agent's own: eviction, preemption, shutdown.
// The outcome is sent once, when no container of the pod runs, or at once if none does or the
// pod has no worker; then the channel is closed. The caller need not receive it.
//
// Kill applies to every earlier request to run the pod, also that of a pod that a source has
// removed and added again: its next worker terminates with the same reason and starts no
// container. A request after the Kill starts the pod. Therefore no pod runs after a Kill of
// each of a set of pods that the sources do not change any more.
func (w *Workers) Kill(uid types.UID, opts KillOptions) <-chan Outcome {
	done := make(chan Outcome, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.pods[uid]
	switch {
	case !ok:
		send(done, NotFound)
	case w.ended:
		send(done, Abandoned)
	default:
		p.done = append(p.done, done)
		w.stepLocked(p, killed{opts})
	}
	return done
}

func send(done chan<- Outcome, o Outcome) {
	done <- o
	close(done)
}

// KillAndWait is Kill for callers that need the pod's resources. It returns a nil error
// only if no container of the pod runs: the outcome is Stopped, AlreadyStopped or
// NeverStarted. Otherwise the pod must be counted as running, and the error contains the
// outcome, NotFound or Abandoned.
//
// It returns an error that wraps ErrStillRunning, and records an event, if the pod has not
// terminated within opts.Timeout, and one that wraps ctx.Err() if ctx is done first. In
// these two cases the outcome is zero and the pod continues to terminate.
func (w *Workers) KillAndWait(ctx context.Context, uid types.UID, opts KillOptions) (Outcome, error) {
	pod := w.podOf(uid)
	if opts.Timeout == 0 {
		opts.Timeout = defaultTimeout(pod, opts.GracePeriodSeconds)
	}
	late := time.NewTimer(opts.Timeout)
	defer late.Stop()
	select {
	case o := <-w.Kill(uid, opts):
		if o == NotFound || o == Abandoned {
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
		return 0, &stillRunning{uid, opts.Timeout}
	}
}

// stillRunning is ErrStillRunning with the pod.
type stillRunning struct {
	uid    types.UID
	waited time.Duration
}

func (e *stillRunning) Error() string {
	return "podworker: " + ErrStillRunning.Error() + " " + string(e.uid) + " (" + e.waited.String() + ")"
}

func (e *stillRunning) Unwrap() error { return ErrStillRunning }

// defaultTimeout returns how long the kubelet waits for a pod that it kills (rule pw-60).
func defaultTimeout(pod *v1.Pod, override *int64) time.Duration {
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
		return p.lifecycle.pod
	}
	return nil
}

// killOrphan terminates a pod that the runtime lists and no source specifies, with the grace
// period Config.OrphanGrace. It has no effect if the pod has a worker.
func (w *Workers) killOrphan(orphan *runtime.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, first := w.workerLocked(orphan.UID); first {
		w.stepLocked(p, orphanFound{orphan, w.cfg.OrphanGrace})
	}
}
