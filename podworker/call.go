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

// A panicError is the error of a call in which the Handler panicked. It is retried as any
// other, so that a panic fails one pod and not the agent.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string {
	return fmt.Sprintf("podworker: the handler panicked: %v", e.value)
}

// A due is a call that is about to be made.
type due struct {
	// ctx is canceled when the call has returned.
	ctx    context.Context
	cancel context.CancelFunc
	pod    *worker
	slot   *slot
	began  time.Time
	ended  time.Time

	call   call
	state  State
	req    SyncRequest
	since  time.Time // when the pod became due
	added  time.Time // when the worker was created
	after  time.Time // the status has to be newer
	static string    // full name of a static pod
	met    bool      // the Handler was called

	preempted []preemption // for events and hooks after the call
}

// work makes one call and returns the next one that is due, if a slot is free.
func (w *Workers) work(ctx context.Context, d due) (due, bool) {
	defer d.cancel()
	info := SyncInfo{UID: d.req.UID, Pod: d.req.Pod, State: d.state, Queued: d.began.Sub(d.since), SinceAdded: d.began.Sub(d.added), First: d.req.First}
	res, err := w.call(d.ctx, &d, &info)
	if d.ended.IsZero() {
		d.ended = time.Now()
	}
	info.Err = err
	following, ok, changed := w.returned(ctx, &d, res, err)
	for _, i := range d.preempted {
		w.cfg.Record(i.event())
		if w.cfg.Hooks.Preempted != nil {
			w.cfg.Hooks.Preempted(i.pod, i.by, i.reason)
		}
	}
	if w.cfg.Hooks.Synced != nil {
		w.cfg.Hooks.Synced(info)
	}
	w.log(d.ctx, &d, res, err, changed)
	return following, ok
}

// log logs a failed call; changed is whether the error is not that of the call before.
func (w *Workers) log(ctx context.Context, d *due, res SyncResult, err error, changed bool) {
	if err == nil || !res.RetryAt.IsZero() || errors.Is(err, context.Canceled) {
		return // the pod's status contains the back-off
	}
	args := []any{"pod", nameOf(d.req), "podUID", d.req.UID, "state", d.state.String(), "err", err}
	level := slog.LevelWarn
	if !changed {
		level = slog.LevelDebug
	} else if p, ok := errors.AsType[*panicError](err); ok {
		level, args = slog.LevelError, append(args, "stack", string(p.stack))
	}
	w.cfg.Logger.Log(ctx, level, "Failed to sync pod; will retry", args...)
}

// beginLocked decides which call is due for p and marks it as in progress.
func (w *Workers) beginLocked(ctx context.Context, p *worker) (due, bool) {
	p.queued, p.again = false, false
	e := w.stepLocked(p, callDue{mayStart: p.static == "" || w.names.isFirst(p.static, p.uid)})
	if e.call == callNone {
		return due{}, false
	}
	l := p.lifecycle
	ctx, cancel := context.WithCancel(ctx)
	p.running, p.calling, p.cancel, p.began = true, e.call, cancel, time.Now()
	p.observed.Store(l.orphan != nil)
	req := SyncRequest{UID: p.uid, Pod: l.pod, Orphan: l.orphan, Mirror: p.mirror, First: !p.met, Termination: l.termination}
	if e.call != callSync {
		req.GracePeriodSeconds = l.grace
	}
	return due{
		ctx: ctx, cancel: cancel, pod: p, began: p.began,
		call: e.call, state: l.state, req: req, since: p.due, added: p.added, after: p.changedAt, static: p.static,
	}, true
}

// call waits for a status of the pod that is newer than the last call that may have changed
// the runtime (rule pw-36), and calls the Handler.
func (w *Workers) call(ctx context.Context, d *due, info *SyncInfo) (res SyncResult, err error) {
	begun := d.began
	if d.req.Orphan == nil {
		d.req.Status, err = w.cfg.StatusCache.GetNewerThan(ctx, d.req.UID, d.after)
		begun = time.Now()
		info.Observed = begun.Sub(d.began)
		if err != nil {
			if ctx.Err() == nil {
				w.cfg.Record(runtime.Event{
					Object: runtime.PodRef(d.req.Pod), Type: v1.EventTypeWarning,
					Reason: "FailedSync", Message: fmt.Sprintf("error determining status: %v", err),
				})
			}
			return SyncResult{}, fmt.Errorf("podworker: observe pod: %w", err)
		}
		d.pod.observed.Store(true)
	}
	if d.call == callSync && d.req.First && d.static != "" {
		if other := w.orphanNamed(d.static, d.req.UID); other != "" {
			return SyncResult{RetryAt: time.Now().Add(w.delays.network)}, &nameInUseError{other}
		}
	}
	d.met = true
	if w.cfg.Hooks.Trace != nil {
		traced, end := w.cfg.Hooks.Trace(ctx, SyncInfo{UID: d.req.UID, Pod: d.req.Pod, State: d.state, First: d.req.First})
		ctx = traced
		defer func() { end(err) }()
	}
	defer func() {
		d.ended = time.Now()
		info.Duration = d.ended.Sub(begun)
		if v := recover(); v != nil {
			res, err = SyncResult{}, &panicError{v, debug.Stack()}
		}
	}()
	switch d.call {
	case callSync:
		return w.cfg.Handler.Sync(ctx, d.req)
	case callTerminate:
		return SyncResult{}, w.cfg.Handler.Terminate(ctx, d.req)
	default:
		return SyncResult{}, w.cfg.Handler.Cleanup(ctx, d.req)
	}
}

// A nameInUseError is the error of a static pod that waits for an orphan of its name.
type nameInUseError struct{ uid types.UID }

func (e *nameInUseError) Error() string {
	return fmt.Sprintf("podworker: orphaned pod %s of the same name has not terminated", e.uid)
}

// orphanNamed returns the UID of another pod of that full name that runs and that no source
// specifies: the manifest was changed while no agent ran. The name queue does not contain it,
// but the new pod must wait for it; Loop terminates it. Empty: there is none.
func (w *Workers) orphanNamed(fullName string, uid types.UID) types.UID {
	// The runtime has been listed: a status was waited for.
	for _, pod := range w.cfg.StatusCache.Pods() {
		if pod.UID == uid || pod.Name+"_"+pod.Namespace != fullName || !pod.MayRun() {
			continue
		}
		w.mu.Lock()
		other, ok := w.pods[pod.UID]
		orphan := !ok || other.lifecycle.orphan != nil
		w.mu.Unlock()
		if orphan {
			return pod.UID
		}
	}
	return ""
}

// returned applies the result of a call, sets the time of the next one for the pod, and takes
// the next call that is due for any pod, under one lock. changed is whether err is not that
// of the call before.
func (w *Workers) returned(ctx context.Context, d *due, res SyncResult, err error) (following due, ok, changed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed = w.returnedLocked(d, res, err)
	d.slot.freeLocked()
	following, ok = w.takeLocked(ctx)
	return following, ok, changed
}

func (w *Workers) returnedLocked(d *due, res SyncResult, err error) (changed bool) {
	p, uid := d.pod, d.req.UID // a pod is not forgotten while a call is in progress
	p.running, p.cancel, p.calling = false, nil, callNone
	changed = err != nil && (p.err == nil || p.err.Error() != err.Error())
	p.called, p.err = d.ended, err
	if d.call != callCleanup && (!res.Idle || err != nil && res.RetryAt.IsZero()) {
		p.changedAt = p.called
	}
	if p.failures++; err == nil {
		p.failures = 0
	}
	p.met = p.met || d.met
	w.stepLocked(p, returned{d.call, res.Terminal, res.Termination, err})
	if p.lifecycle.state == Finished {
		p.again = false
		return changed
	}
	p.victims = nil
	if r, ok := errors.AsType[*runtime.Rejection](err); ok && p.lifecycle.state == Syncing {
		d.preempted = w.preemptLocked(p, r)
	}
	if p.again {
		w.wakeLocked(p)
	}
	p.again = false
	if p.queued {
		return changed
	}
	delay := w.delays.after(p.called, res, err, p.failures, func(d time.Duration) time.Duration { return w.cfg.Jitter(uid, d) })
	p.next = p.called.Add(delay)
	if w.ended {
		return changed
	}
	if p.timer == nil {
		p.timer = time.AfterFunc(delay, func() { w.expired(uid) })
		return changed
	}
	p.timer.Reset(delay)
	return changed
}

func nameOf(req SyncRequest) string {
	switch {
	case req.Pod != nil:
		return req.Pod.Namespace + "/" + req.Pod.Name
	case req.Orphan != nil:
		return req.Orphan.Namespace + "/" + req.Orphan.Name
	default:
		return ""
	}
}
