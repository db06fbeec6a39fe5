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
	// ctx is the call's own, and ends with it.
	ctx    context.Context
	cancel context.CancelFunc
	pod    *worker
	slot   *slot
	began  time.Time
	ended  time.Time

	call   call
	state  State
	work   SyncRequest
	since  time.Time // when it became due
	seen   time.Time // when the pod was first heard of
	after  time.Time // the status has to be newer than this: a call may have done something until then
	static string    // full name of a static pod
	met    bool      // the Handler was called

	preempted []PreemptInfo // to be told of after it
}

// work makes one call, and returns the next one that is due, if there is a place
// for it.
func (w *Workers) work(ctx context.Context, d due) (due, bool) {
	defer d.cancel()
	info := SyncInfo{UID: d.work.UID, Pod: d.work.Pod, State: d.state, Queued: d.began.Sub(d.since), SinceSeen: d.began.Sub(d.seen), First: d.work.First}
	next, err := w.call(d.ctx, &d, &info)
	if d.ended.IsZero() {
		d.ended = time.Now()
	}
	info.Err = err
	following, ok, news := w.returned(ctx, &d, next, err)
	for _, i := range d.preempted {
		w.cfg.Record(i.event())
		if w.cfg.Hooks.Preempted != nil {
			w.cfg.Hooks.Preempted(i)
		}
	}
	if w.cfg.Hooks.Worked != nil {
		w.cfg.Hooks.Worked(info)
	}
	w.log(d.ctx, &d, next, err, news)
	return following, ok
}

func (w *Workers) log(ctx context.Context, d *due, next SyncResult, err error, news bool) {
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

// beginLocked settles what is to be called for p, and marks the call as in
// flight.
func (w *Workers) beginLocked(ctx context.Context, p *worker) (due, bool) {
	p.queued, p.again = false, false
	e := w.stepLocked(p, turn{mayStart: p.static == "" || w.turns.has(p.static, p.uid)})
	if e.call == callNone {
		return due{}, false
	}
	ctx, cancel := context.WithCancel(ctx)
	p.running, p.calling, p.cancel, p.began = true, e.call, cancel, time.Now()
	p.observed.Store(p.life.orphan != nil)
	work := SyncRequest{UID: p.uid, Pod: p.life.pod, Orphan: p.life.orphan, Mirror: p.mirror, First: !p.met, Ending: p.life.ending}
	if e.call != callSync {
		work.GracePeriodSeconds = p.life.grace
	}
	return due{
		ctx: ctx, cancel: cancel, pod: p, began: p.began,
		call: e.call, state: p.life.state, work: work, since: p.due, seen: p.seen, after: p.touched, static: p.static,
	}, true
}

// call waits for a status of the pod that is newer than the last call that may
// have done something (pw-36), and calls the Handler.
func (w *Workers) call(ctx context.Context, d *due, info *SyncInfo) (next SyncResult, err error) {
	begun := d.began
	if d.work.Orphan == nil {
		d.work.Status, err = w.cfg.StatusCache.GetNewerThan(ctx, d.work.UID, d.after)
		begun = time.Now()
		info.Observed = begun.Sub(d.began)
		if err != nil {
			if ctx.Err() == nil {
				w.cfg.Record(runtime.Event{
					Object: runtime.PodRef(d.work.Pod), Type: v1.EventTypeWarning,
					Reason: "FailedSync", Message: fmt.Sprintf("error determining status: %v", err),
				})
			}
			return SyncResult{}, fmt.Errorf("podworker: observe pod: %w", err)
		}
		d.pod.observed.Store(true)
	}
	if d.call == callSync && d.work.First && d.static != "" {
		if other := w.leftOver(d.static, d.work.UID); other != "" {
			return SyncResult{Retry: time.Now().Add(w.delays.network)}, &leftOverError{other}
		}
	}
	d.met = true
	defer func() {
		d.ended = time.Now()
		info.Duration = d.ended.Sub(begun)
		if v := recover(); v != nil {
			next, err = SyncResult{}, &PanicError{v, debug.Stack()}
		}
	}()
	switch d.call {
	case callSync:
		return w.cfg.Handler.Sync(ctx, d.work)
	case callTerminate:
		return SyncResult{}, w.cfg.Handler.Terminate(ctx, d.work)
	default:
		return SyncResult{}, w.cfg.Handler.Cleanup(ctx, d.work)
	}
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

// returned takes in the outcome of a call, and sets the time of the next one for
// that pod. It reports whether err is another than that of the call before, and
// takes the next call that is due for any pod: all under one lock.
func (w *Workers) returned(ctx context.Context, d *due, next SyncResult, err error) (following due, ok, news bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	news = w.returnedLocked(d, next, err)
	d.slot.freeLocked()
	following, ok = w.takeLocked(ctx)
	return following, ok, news
}

func (w *Workers) returnedLocked(d *due, next SyncResult, err error) (news bool) {
	p, uid := d.pod, d.work.UID // a pod is not forgotten while a call is in flight
	p.running, p.cancel, p.calling = false, nil, callNone
	news = err != nil && (p.err == nil || p.err.Error() != err.Error())
	p.called, p.err = d.ended, err
	if d.call != callCleanup && (!next.Idle || err != nil && next.Retry.IsZero()) {
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
	p.victims = nil
	if r, ok := errors.AsType[*runtime.Rejection](err); ok && p.life.state == Syncing {
		d.preempted = w.preemptLocked(p, r)
	}
	if p.again {
		w.wakeLocked(p)
	}
	p.again = false
	if p.queued {
		return news
	}
	delay, wait := w.delays.after(p.called, next, err, p.failures, w.cfg.Jitter)
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

func nameOf(work SyncRequest) string {
	switch {
	case work.Pod != nil:
		return work.Pod.Namespace + "/" + work.Pod.Name
	case work.Orphan != nil:
		return work.Orphan.Namespace + "/" + work.Orphan.Name
	default:
		return ""
	}
}
