package prober

import (
	"context"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// launch starts the attempts that the budget permits.
func (m *Manager) launch(ctx context.Context, attempts *sync.WaitGroup) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		now := time.Now()
		w := m.budget.take(now)
		if w == nil {
			return
		}
		runCtx, cancel := context.WithCancel(ctx)
		w.cancel, w.ran = cancel, true
		t, lag := w.target(), max(now.Sub(w.since), 0)
		attempts.Go(func() {
			defer cancel()
			m.run(runCtx, w, t, lag)
		})
	}
}

// target returns the Target of the next attempt.
func (w *worker) target() Target {
	return Target{
		Pod: w.pod.pod, Container: w.container, Kind: w.kind, Probe: w.probe,
		ContainerID: w.state.id, PodIP: w.pod.ip, Timeout: w.timing.Timeout,
	}
}

// run makes one attempt. If it was canceled in between, it has no effect.
func (m *Manager) run(ctx context.Context, w *worker, t Target, lag time.Duration) {
	r := Attempt{At: time.Now()}
	outcome, err := m.cfg.Handlers.Probe(ctx, t)
	r.Duration = time.Since(r.At)
	canceled := ctx.Err() != nil
	if !canceled {
		if err != nil {
			outcome.Result, outcome.Warning = runtime.ProbeUnknown, false
			r.Err, r.Output = true, cut(err.Error(), detailMax)
		}
		if e, ok := event(t, outcome, err); ok {
			if err == nil {
				r.Output = cut(text(outcome), detailMax)
			}
			m.cfg.Record(e) // before the result is delivered
		}
		r.Result = outcome.Result
	}
	log := slog.LevelDebug
	if m.finished(w, t, r, canceled) {
		log = slog.LevelWarn
	}
	if r.Err {
		m.cfg.Logger.Log(ctx, log, "Failed to run probe, will retry", "pod", t.Pod.Namespace+"/"+t.Pod.Name, "podUID", t.Pod.UID,
			"containerName", t.Container.Name, "probe", t.Kind, "err", r.Output)
	}
	if f := m.cfg.Hooks.Ran; f != nil && !canceled {
		f(AttemptInfo{
			Pod: t.Pod, Container: t.Container.Name, Kind: t.Kind,
			Result: r.Result, Err: err, Duration: r.Duration, Lag: lag,
		})
	}
}

// finished stores the outcome of an attempt and schedules the next one. It reports whether the
// attempt could not be carried out although the previous one could.
func (m *Manager) finished(w *worker, t Target, r Attempt, canceled bool) (newError bool) {
	m.mu.Lock()
	defer m.unlock()
	m.budget.done(w)
	w.cancel = nil
	if m.budget.queued() {
		wake(m.wake)
	}
	if w.removed {
		return false
	}
	if !canceled {
		newError, w.errs = r.Err && !w.errs, r.Err
		w.addHistory(r, m.cfg.History)
		if !r.Err {
			s, a := w.state.evaluate(w.kind, w.timing, t.ContainerID, r.Result)
			w.state = s
			m.actLocked(w, a)
		}
	}
	if w.fresh || w.state.phase != probing {
		m.inspectLocked(w.pod)
		return newError
	}
	w.next(time.Now(), m.cfg.Schedule.Jitter, m.cfg.Schedule.Rand)
	m.timers.set(w)
	if w.index == 0 {
		wake(m.wake)
	}
	return newError
}

// A hookCall has the arguments of Hooks.Removed or Hooks.Deferred.
type hookCall struct {
	pod       *v1.Pod
	container string
	kind      Kind
}

// removeLocked schedules a call of Hooks.Removed.
func (m *Manager) removeLocked(w *worker) {
	if m.cfg.Hooks.Removed != nil {
		m.removed = append(m.removed, w.hookCall())
	}
}

func (w *worker) hookCall() hookCall { return hookCall{w.pod.pod, w.container.Name, w.kind} }
