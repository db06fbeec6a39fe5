package prober

import (
	"context"
	"sync"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// loop inspects pods and starts attempts until ctx is done and the last attempt has returned. All
// waiting workers share its goroutine.
func (m *Manager) loop(ctx context.Context) {
	var attempts sync.WaitGroup
	defer attempts.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var fired time.Time
	for ctx.Err() == nil {
		pause := m.work(ctx, &attempts)
		timer.Reset(max(pause, bundle-time.Since(fired)))
		select {
		case <-ctx.Done():
		case <-m.wake:
		case fired = <-timer.C:
		}
	}
}

// bundle is the minimum interval between two expirations of the timer. At a thousand probes a
// second, five attempts then start together, which saves four of five wakeups.
const bundle = 5 * time.Millisecond

// work inspects the pods and starts the attempts that are due, and returns the time until the
// next one is.
func (m *Manager) work(ctx context.Context, attempts *sync.WaitGroup) time.Duration {
	for ctx.Err() == nil {
		p := m.next(time.Now())
		if p == nil {
			break
		}
		m.inspect(p)
		m.launch(ctx, attempts)
	}
	m.launch(ctx, attempts)
	return m.pause(time.Now())
}

// next returns a pod that must be inspected now, or nil.
func (m *Manager) next(now time.Time) *probedPod {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.queue) > 0 {
		p := m.queue[0]
		m.queue[0] = nil
		m.queue = m.queue[1:]
		if p.queued = false; !p.removed {
			return p
		}
	}
	if len(m.timers) > 0 && !m.timers[0].wake.After(now) {
		return m.timers[0].pod
	}
	return nil
}

// pause returns the time until the next attempt is due.
func (m *Manager) pause(now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	pause := time.Hour
	if len(m.timers) > 0 {
		pause = min(pause, m.timers[0].wake.Sub(now))
	}
	if at := m.budget.at(); !at.IsZero() {
		pause = min(pause, at.Sub(now))
	}
	return max(pause, 0)
}

// inspectLocked queues p for inspection by the loop.
func (m *Manager) inspectLocked(p *probedPod) {
	if p.queued || p.removed || m.began.IsZero() {
		return
	}
	p.queued = true
	m.queue = append(m.queue, p)
	wake(m.wake)
}

// wake sends to a channel of capacity 1 without blocking.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// inspect passes the status of p to its workers, and queues the attempts that are due.
func (m *Manager) inspect(p *probedPod) {
	observed := m.observe(p)
	var hosts []string
	if m.cfg.HostIPs != nil {
		hosts = m.cfg.HostIPs()
	}
	m.mu.Lock()
	defer m.unlock()
	if p.removed {
		return
	}
	now, v := time.Now(), view{pod: p.pod, observed: observed, hostIPs: hosts}
	p.ip = v.ip()
	for _, w := range p.workers {
		m.observeLocked(w, v, now)
	}
}

// observe returns the observed status of p, or nil if the pod's own status is used.
func (m *Manager) observe(p *probedPod) *runtime.PodStatus {
	if m.cfg.Status == nil {
		return nil
	}
	observed, err := m.cfg.Status(p.uid)
	if err != nil {
		m.cfg.Logger.Debug("Using stale pod status", "podUID", p.uid, "err", err)
	}
	if observed == nil {
		observed = &runtime.PodStatus{UID: p.uid}
	}
	return observed
}

// observeLocked makes the transition of w for an observation, and schedules it.
func (m *Manager) observeLocked(w *worker, v view, now time.Time) {
	f := v.facts(w.container)
	f.started = w.passed(f.id)
	if f.id != w.state.id {
		f.before = m.before(w, f.id)
	}
	was := w.state
	s, a := was.observe(w.kind, f)
	w.state = s
	m.actLocked(w, a)
	w.fresh = w.fresh || a.begin
	if s.id != was.id || s.phase != probing {
		w.cancelAttempt()
	}
	switch {
	case w.turn != resting: // scheduled when the attempt has ended
		return
	case s.phase != probing:
		w.fresh, w.wake = false, now.Add(w.inspectPeriod())
	case w.fresh:
		w.begin(now, f.startedAt, m.made, m.cfg.Schedule.Rand)
	}
	if s.phase == probing && !w.wake.After(now) {
		m.timers.drop(w)
		w.since = w.wake
		if m.cfg.Hooks.Deferred != nil && m.budget.full(w, now) {
			m.deferred = append(m.deferred, w.hookCall())
		}
		m.budget.queue(w)
		return
	}
	m.timers.set(w)
}

// actLocked carries out the actions of a transition.
func (m *Manager) actLocked(w *worker, a actions) {
	if a.changed {
		m.notifyLocked(w)
	}
	if a.end {
		m.removeLocked(w)
	}
}
