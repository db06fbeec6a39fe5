package podworker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A PanicError is the error of a call in which the Handler panicked. It is
// retried as any other: one pod's bad luck is not that of the node (L-26).
type PanicError struct {
	Value any    // what was panicked with
	Stack []byte // of the goroutine
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("podworker: the handler panicked: %v", e.Value)
}

// A due is one call that is about to be made.
type due struct {
	call   call
	state  State
	work   Work
	since  time.Time // when it became due
	seen   time.Time // when the pod was first heard of
	after  time.Time // the status has to be newer than this: a call may have done something until then
	static string    // full name of a static pod
	met    bool      // the Handler was called
}

// work makes one call for uid, if one is due.
func (w *Workers) work(ctx context.Context, uid types.UID) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d, ok := w.begin(uid, cancel)
	if !ok {
		return
	}
	now := time.Now()
	info := WorkInfo{UID: uid, State: d.state, Queued: now.Sub(d.since), SinceSeen: now.Sub(d.seen), First: d.work.First}
	next, err := w.call(ctx, &d, &info)
	info.Err = err
	news := w.returned(&d, next, err)
	if w.cfg.Hooks.Worked != nil {
		w.cfg.Hooks.Worked(info)
	}
	w.log(ctx, &d, next, err, news)
}

func (w *Workers) log(ctx context.Context, d *due, next Next, err error, news bool) {
	if err == nil || !next.Retry.IsZero() || errors.Is(err, context.Canceled) {
		return // a back-off is no news: the status says it
	}
	args := []any{"uid", d.work.UID, "pod", nameOf(d.work), "state", d.state.String(), "err", err}
	level := slog.LevelWarn
	if !news {
		level = slog.LevelDebug // each retry would say it again
	} else if p, ok := errors.AsType[*PanicError](err); ok {
		level, args = slog.LevelError, append(args, "stack", string(p.Stack))
	}
	w.cfg.Logger.Log(ctx, level, "pod work failed", args...)
}

// begin settles what is to be called for uid, and marks the call as in flight.
func (w *Workers) begin(uid types.UID, cancel context.CancelFunc) (due, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.pods[uid]
	if !ok {
		return due{}, false
	}
	p.queued, p.again = false, false
	e := w.stepLocked(p, turn{mayStart: p.static == "" || w.turns.has(p.static, uid)})
	if e.call == callNone {
		return due{}, false
	}
	p.running, p.calling, p.observed, p.cancel, p.began = true, e.call, p.life.orphan != nil, cancel, time.Now()
	work := Work{UID: uid, Pod: p.life.pod, Orphan: p.life.orphan, Mirror: p.mirror, First: !p.met, Ending: p.life.ending}
	if e.call != callSync {
		work.GracePeriodSeconds = p.life.grace
	}
	return due{call: e.call, state: p.life.state, work: work, since: p.due, seen: p.seen, after: p.touched, static: p.static}, true
}

// call waits for a status of the pod that is newer than the last call that may
// have done something (pw-36), and calls the Handler.
func (w *Workers) call(ctx context.Context, d *due, info *WorkInfo) (next Next, err error) {
	if d.work.Orphan == nil {
		begun := time.Now()
		d.work.Status, err = w.cfg.Statuses.GetNewerThan(ctx, d.work.UID, d.after)
		info.Observed = time.Since(begun)
		if err != nil {
			if ctx.Err() == nil {
				w.cfg.Record(runtime.Event{
					Object: runtime.PodRef(d.work.Pod), Type: v1.EventTypeWarning,
					Reason: "FailedSync", Message: fmt.Sprintf("error determining status: %v", err),
				})
			}
			return Next{}, fmt.Errorf("podworker: observe pod: %w", err)
		}
		w.nowObserved(d.work.UID)
	}
	if d.call == callSync && d.work.First && d.static != "" {
		if other := w.leftOver(d.static, d.work.UID); other != "" {
			return Next{Retry: time.Now().Add(w.delays.network)}, &leftOverError{other}
		}
	}
	d.met = true
	defer func(t time.Time) {
		info.Duration = time.Since(t)
		if v := recover(); v != nil {
			next, err = Next{}, &PanicError{v, debug.Stack()}
		}
	}(time.Now())
	switch d.call {
	case callSync:
		return w.cfg.Handler.Sync(ctx, d.work)
	case callTerminate:
		return Next{}, w.cfg.Handler.Terminate(ctx, d.work)
	default:
		return Next{}, w.cfg.Handler.Cleanup(ctx, d.work)
	}
}

func (w *Workers) nowObserved(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods[uid].observed = true // a pod is not forgotten while a call is in flight
}

// leftOverError says that a static pod waits for one of its name that an
// earlier agent left.
type leftOverError struct{ uid types.UID }

func (e *leftOverError) Error() string {
	return fmt.Sprintf("podworker: pod %s of the same name, which nobody wants, has not stopped yet", e.uid)
}

// leftOver returns the UID of another pod of that full name that the runtime
// runs, and which is not one of the wanted pods: a manifest was changed while no
// agent ran. The turns don't know of it, and the new pod has to wait for it all
// the same (inv-3); Loop.Sweep ends it. Empty: there is none.
func (w *Workers) leftOver(fullName string, uid types.UID) types.UID {
	// A status was waited for before, so that there has been a list.
	for _, pod := range w.cfg.Pods() {
		if pod.UID == uid || pod.Name+"_"+pod.Namespace != fullName || !running(pod) {
			continue
		}
		w.mu.Lock()
		other, known := w.pods[pod.UID]
		orphan := !known || other.life.orphan != nil
		w.mu.Unlock()
		if orphan {
			return pod.UID
		}
	}
	return ""
}

// returned takes in the outcome of a call, and sets the time of the next one.
// It reports whether err is another than that of the call before.
func (w *Workers) returned(d *due, next Next, err error) (news bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	uid := d.work.UID
	p := w.pods[uid]
	p.running, p.cancel, p.calling = false, nil, callNone
	news = err != nil && (p.err == nil || p.err.Error() != err.Error())
	p.called, p.err = time.Now(), err
	if !next.Idle || err != nil && next.Retry.IsZero() {
		p.touched = p.called
	}
	if p.failures++; err == nil {
		p.failures = 0
	}
	p.met = p.met || d.met
	w.stepLocked(p, returned{d.call, next.Terminal, next.Ending, err})
	if p.life.state == Finished {
		p.again = false
		return news
	}
	if p.again {
		w.wakeLocked(p)
	}
	p.again = false
	if p.queued {
		return news
	}
	delay, wait := w.delays.after(p.called, next, err, w.cfg.Jitter)
	p.next, p.wait = p.called.Add(delay), wait
	if w.ended {
		return news
	}
	if p.timer == nil {
		p.timer = time.AfterFunc(delay, func() { w.expired(uid) })
		return news
	}
	p.timer.Reset(delay)
	return news
}

func nameOf(work Work) string {
	switch {
	case work.Pod != nil:
		return work.Pod.Namespace + "/" + work.Pod.Name
	case work.Orphan != nil:
		return work.Orphan.Namespace + "/" + work.Orphan.Name
	default:
		return ""
	}
}
