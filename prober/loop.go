package prober

import (
	"context"
	"sync"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// loop has each worker look and run when its time has come, until ctx ends and
// the last run has returned. It is the one goroutine that all who wait share
// (F-02).
func (m *Manager) loop(ctx context.Context) {
	var flights sync.WaitGroup
	defer flights.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var rang time.Time
	for ctx.Err() == nil {
		pause := m.turn(ctx, &flights)
		timer.Reset(max(pause, bundle-time.Since(rang)))
		select {
		case <-ctx.Done():
		case <-m.wake:
		case rang = <-timer.C:
		}
	}
}

// bundle is how long after one ring of the timer the next one comes at the
// earliest. At a thousand probes a second, five begin together then, and being
// woken for them costs a fifth; where there are few it makes no difference.
const bundle = 5 * time.Millisecond

// turn does what there is to do now, and returns for how long there is nothing.
func (m *Manager) turn(ctx context.Context, flights *sync.WaitGroup) time.Duration {
	for ctx.Err() == nil {
		p := m.next(time.Now())
		if p == nil {
			break
		}
		m.look(p)
		m.launch(ctx, flights)
	}
	m.launch(ctx, flights)
	return m.pause(time.Now())
}

// next returns a pod that has to be looked at now, or nil.
func (m *Manager) next(now time.Time) *watched {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.looks) > 0 {
		p := m.looks[0]
		m.looks[0] = nil
		m.looks = m.looks[1:]
		if p.looked = false; !p.gone {
			return p
		}
	}
	if len(m.timers) > 0 && !m.timers[0].wake.After(now) {
		return m.timers[0].of
	}
	return nil
}

// pause returns how long it is until the next timer.
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

// lookLocked has the loop look at p.
func (m *Manager) lookLocked(p *watched) {
	if p.looked || p.gone || m.began.IsZero() {
		return
	}
	p.looked = true
	m.looks = append(m.looks, p)
	edge(m.wake)
}

func edge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// look has all workers of p see their containers, and queues those whose time
// has come. Whoever has seen something new is told of it.
func (m *Manager) look(p *watched) {
	observed := m.observe(p)
	var hosts []string
	if m.cfg.HostIPs != nil {
		hosts = m.cfg.HostIPs()
	}
	m.mu.Lock()
	defer m.unlock()
	if p.gone {
		return
	}
	now, v := time.Now(), view{pod: p.pod, observed: observed, hosts: hosts}
	p.ip = v.ip()
	for _, w := range p.workers {
		m.seeLocked(w, v, now)
	}
}

// observe asks what is known of p. Nil: its own status counts.
func (m *Manager) observe(p *watched) *runtime.PodStatus {
	if m.cfg.Status == nil {
		return nil
	}
	observed, err := m.cfg.Status(p.uid)
	if err != nil {
		m.cfg.Logger.Debug("what is known of a pod is old", "uid", p.uid, "err", err)
	}
	if observed == nil {
		observed = &runtime.PodStatus{UID: p.uid}
	}
	return observed
}

// seeLocked has w see its container, and finds out when it is next to do
// something.
func (m *Manager) seeLocked(w *worker, v view, now time.Time) {
	f := v.facts(w.container)
	f.started = w.passed(f.id)
	if f.id != w.state.id {
		f.before = m.before(w, f.id)
	}
	was := w.state
	s, a := was.see(w.kind, f)
	w.state = s
	m.actLocked(w, a)
	w.fresh = w.fresh || a.begin
	if s.id != was.id || s.phase != probing {
		w.callOff()
	}
	switch {
	case w.turn != resting: // what is to come is found out when it has ended
		return
	case s.phase != probing:
		w.fresh, w.wake = false, now.Add(w.idleFor())
	case w.fresh:
		w.begin(now, f.startedAt, m.made, m.cfg.Rand)
	}
	if s.phase == probing && !w.wake.After(now) {
		m.timers.drop(w)
		w.since = w.wake
		if m.cfg.Hooks.Deferred != nil && m.budget.full(w, now) {
			m.deferred = append(m.deferred, w.deferInfo())
		}
		m.budget.queue(w)
		return
	}
	m.timers.set(w)
}

// actLocked does what a step of w asks for.
func (m *Manager) actLocked(w *worker, a actions) {
	if a.changed {
		m.tellLocked(w)
	}
	if a.end {
		m.removeLocked(w)
	}
}
