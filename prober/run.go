package prober

import (
	"context"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// launch starts the runs for which there is room.
func (m *Manager) launch(ctx context.Context, flights *sync.WaitGroup) {
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
		flights.Go(func() {
			defer cancel()
			m.run(runCtx, w, t, lag)
		})
	}
}

// target returns what the next run of w is about.
func (w *worker) target() Target {
	return Target{
		Pod: w.of.pod, Container: w.container, Kind: w.kind, Probe: w.probe,
		ContainerID: w.state.id, PodIP: w.of.ip, Timeout: w.timing.Timeout,
	}
}

// run is one run of w. One that was called off meanwhile was none.
func (m *Manager) run(ctx context.Context, w *worker, t Target, lag time.Duration) {
	r := Attempt{At: time.Now()}
	outcome, err := m.cfg.Handlers.Probe(ctx, t)
	r.Took = time.Since(r.At)
	off := ctx.Err() != nil
	if !off {
		if err != nil {
			outcome.Result, outcome.Warning = runtime.ProbeUnknown, false
			r.Err, r.Output = true, cut(err.Error(), detailMax)
		}
		if e, ok := event(t, outcome, err); ok {
			if err == nil {
				r.Output = cut(text(outcome), detailMax)
			}
			m.cfg.Record(e) // before anybody is told of what follows from it
		}
		r.Result = outcome.Result
	}
	log := slog.LevelDebug
	if m.landed(w, t, r, off) {
		log = slog.LevelWarn
	}
	if r.Err {
		m.cfg.Logger.Log(ctx, log, "Failed to run probe, will retry", "pod", t.Pod.Namespace+"/"+t.Pod.Name, "podUID", t.Pod.UID,
			"containerName", t.Container.Name, "probe", t.Kind, "err", r.Output)
	}
	if f := m.cfg.Hooks.Ran; f != nil && !off {
		f(AttemptInfo{
			Pod: t.Pod, Container: t.Container.Name, Kind: t.Kind,
			Result: r.Result, Err: err, Duration: r.Took, Lag: lag,
		})
	}
}

// landed records the result of a run, and computes when w runs next. It reports
// whether the run could not be carried out although the one before it could.
func (m *Manager) landed(w *worker, t Target, r Attempt, off bool) (news bool) {
	m.mu.Lock()
	defer m.unlock()
	m.budget.done(w)
	w.cancel = nil
	if m.budget.queued() {
		edge(m.wake)
	}
	if w.gone {
		return false
	}
	if !off {
		news, w.errs = r.Err && !w.errs, r.Err
		w.remember(r, m.cfg.History)
		if !r.Err { // prober-21
			s, a := w.state.judge(w.kind, w.timing, t.ContainerID, r.Result)
			w.state = s
			m.actLocked(w, a)
		}
	}
	if w.fresh || w.state.phase != probing {
		m.lookLocked(w.of)
		return news
	}
	w.next(time.Now(), m.cfg.Jitter, m.cfg.Rand)
	m.timers.set(w)
	if w.place == 0 {
		edge(m.wake)
	}
	return news
}

// removal is what Hooks.Removed is told.
type removal struct {
	pod       *v1.Pod
	container string
	kind      Kind
}

// removeLocked tells that w is no more.
func (m *Manager) removeLocked(w *worker) {
	if m.cfg.Hooks.Removed != nil {
		m.removed = append(m.removed, removal{w.of.pod, w.container.Name, w.kind})
	}
}

func (w *worker) deferInfo() DeferInfo {
	return DeferInfo{Pod: w.of.pod, Container: w.container.Name, Kind: w.kind, Exec: w.probe.Exec != nil}
}
