package allocation

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Run retries pending resizes after a pod was released, and every Config.Period. It blocks until ctx
// is done and returns nil. A second call returns an error.
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

// Retry decides about all pending resizes and returns how many were allocated. It does nothing
// until Config.Ready. Infeasible resizes are skipped until the pod requests other resources. Retry
// is the synchronous step of Run and may be called for triggers that Run does not detect.
func (m *Manager) Retry(ctx context.Context, trigger Trigger) (granted int) {
	m.deciding.Lock()
	defer m.deciding.Unlock()
	return m.retry(ctx, trigger, "")
}

// retry is Retry with deciding locked. Config.Changed is not called for the pod self, which is
// being synced.
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

// pending returns the resizes to decide, in order.
func (m *Manager) pending() []waiting {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []waiting
	for _, e := range m.pods {
		if !e.delivered || !e.allocated {
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

// decide decides about a resize and reports whether it was allocated.
func (m *Manager) decide(ctx context.Context, w waiting, trigger Trigger) bool {
	m.mu.Lock()
	e := m.pods[w.desired.UID]
	m.mu.Unlock()
	if e == nil { // released in between
		return false
	}
	outcome, message := m.judge(ctx, w)
	if ctx.Err() != nil {
		return false // the call may have been rejected because ctx is done
	}
	now, desired := time.Now(), Desired(w.desired, m.cfg.AllInit).clone()
	m.mu.Lock()
	e.decided, e.isDecided = desired, true
	if outcome == NotPending {
		e.granted, e.grantedAt = desired, now
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

// judge checks NodeFacts, then Config.Admit.
func (m *Manager) judge(ctx context.Context, w waiting) (outcome Pending, message string) {
	if reason := m.cfg.Node.Feasible(w.desired, w.granted); reason != "" {
		return Infeasible, reason
	}
	rejection := m.cfg.Admit(ctx, Request{Operation: Resize, Pod: w.desired, Others: m.others(w.desired.UID)})
	switch {
	case rejection == nil:
		return NotPending, ""
	case rejection.Reason == v1.PodReasonInfeasible:
		return Infeasible, rejection.Message
	default:
		return Deferred, rejection.Message
	}
}
