package allocation

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Run tries pending resizes again whenever a pod was released, and from time to
// time (al-7), until ctx ends; it then returns nil. A second call returns an error.
func (m *Manager) Run(ctx context.Context) error {
	if m.ran.Swap(true) {
		return errors.New("allocation: Manager.Run was called before")
	}
	for {
		period := m.cfg.Period
		if !m.cfg.Ready() {
			period = m.cfg.EarlyPeriod
		}
		timer := time.NewTimer(period)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case trigger := <-m.kick:
			timer.Stop()
			m.Retry(ctx, trigger)
		case <-timer.C:
			m.Retry(ctx, PeriodicRetry)
		}
	}
}

// Retry decides about each pod that asks for something else than it was granted,
// in the order of al-6, and returns how many were granted it. While sources are
// not ready it does nothing (al-8); a resize that was found infeasible is left
// alone until the pod asks for something else (al-10). It is the step under
// Run, and may be called for every [Trigger] that Run does not hear of.
func (m *Manager) Retry(ctx context.Context, trigger Trigger) (granted int) {
	m.deciding.Lock()
	defer m.deciding.Unlock()
	return m.retry(ctx, trigger, "")
}

// retry is Retry under deciding. Config.Changed is not told of the pod self, in
// the sync of which it is called.
func (m *Manager) retry(ctx context.Context, trigger Trigger, self types.UID) (granted int) {
	if !m.cfg.Ready() {
		return 0
	}
	for _, w := range m.pending() {
		if ctx.Err() != nil {
			return granted
		}
		if m.decide(ctx, w, trigger) {
			granted++
		}
		if w.desired.UID != self && m.State(w.desired.UID) != w.state {
			m.cfg.Changed(w.desired.UID)
		}
	}
	return granted
}

// pending returns the resizes that are to be decided, in order.
func (m *Manager) pending() []waiting {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []waiting
	for _, e := range m.pods {
		if !e.brought || !e.held {
			continue
		}
		desired := Desired(e.pod, m.cfg.AllInit)
		if desired.Equal(e.granted) || e.state.Pending == Infeasible && e.isDecided && desired.Equal(e.decided) {
			continue
		}
		list = append(list, waiting{desired: e.pod, granted: e.granted.Apply(e.pod), state: e.state})
	}
	arrange(list)
	return list
}

// decide decides about one resize, and reports whether it was granted.
func (m *Manager) decide(ctx context.Context, w waiting, trigger Trigger) bool {
	m.mu.Lock()
	e := m.pods[w.desired.UID]
	m.mu.Unlock()
	if e == nil { // released meanwhile
		return false
	}
	outcome, message := m.judge(ctx, w)
	if ctx.Err() != nil {
		return false // the call may have been rejected because ctx is done
	}
	now, asked := time.Now(), Desired(w.desired, m.cfg.AllInit).clone()
	m.mu.Lock()
	e.decided, e.isDecided = asked, true
	if outcome == NotPending {
		e.granted, e.grantedAt = asked, now
	}
	m.mu.Unlock()
	if outcome == NotPending {
		m.save(e)
	}
	info := DecisionInfo{UID: w.desired.UID, Trigger: trigger, Before: w.state.Pending, After: outcome, Message: message}
	if !w.state.PendingSince.IsZero() {
		info.Waited = now.Sub(w.state.PendingSince)
	}
	m.change(e, func(s *State) {
		s.Pending, s.PendingMessage = outcome, message
		if outcome == NotPending {
			s.PendingGeneration, s.PendingSince = 0, time.Time{}
			s.InProgress, s.Error, s.ProgressGeneration = true, "", w.desired.Generation
			return
		}
		s.PendingGeneration = w.desired.Generation
		if s.PendingSince.IsZero() {
			s.PendingSince = now
		}
	})
	m.cfg.Hooks.Decided(info)
	return outcome == NotPending
}

// judge asks the node's facts and then whoever admits.
func (m *Manager) judge(ctx context.Context, w waiting) (outcome Pending, message string) {
	if why := m.cfg.Node.Feasible(w.desired, w.granted); why != "" {
		return Infeasible, why
	}
	rejection := m.cfg.Admit(ctx, Request{Operation: Resize, Pod: w.desired, Others: m.others(w.desired.UID)})
	switch {
	case rejection == nil:
		return NotPending, ""
	case rejection.Reason == v1.PodReasonInfeasible:
		return Infeasible, rejection.Message
	default:
		return Deferred, rejection.Message // al-11
	}
}
