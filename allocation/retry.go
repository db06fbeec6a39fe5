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
		if !m.cfg.Pods.Synced() {
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
			m.Retry(ctx, triggerPeriodicRetry)
		}
	}
}

// Retry decides about all pending resizes and returns how many were allocated. It does nothing
// until all sources have synced. Infeasible resizes are skipped until the pod requests other resources. Retry
// is the synchronous step of Run and may be called for triggers that Run does not detect, such as
// "pod_terminated"; trigger is passed to Hooks.Decided.
func (m *Manager) Retry(ctx context.Context, trigger string) (allocated int) {
	m.deciding.Lock()
	defer m.deciding.Unlock()
	return m.retry(ctx, trigger, "")
}

// retry is Retry with deciding locked. Config.Changed is not called for the pod self, which is
// being synced.
func (m *Manager) retry(ctx context.Context, trigger string, self types.UID) (allocated int) {
	if !m.cfg.Pods.Synced() {
		return 0
	}
	for _, w := range m.pending() {
		if ctx.Err() != nil {
			return allocated
		}
		if m.decide(ctx, w, trigger) {
			allocated++
		}
		if w.desired.UID != self && m.ResizeState(w.desired.UID) != w.state {
			m.cfg.Pods.PodChanged(w.desired.UID)
		}
	}
	return allocated
}

// pending returns the resizes to decide, in order.
func (m *Manager) pending() []pendingResize {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []pendingResize
	for _, e := range m.pods {
		if !e.delivered || !e.isAllocated || e.allocated.areOf(e.pod, m.cfg.InitContainers) {
			continue
		}
		if e.state.PendingReason == v1.PodReasonInfeasible && e.isDecided && e.decided.areOf(e.pod, m.cfg.InitContainers) {
			continue
		}
		list = append(list, pendingResize{desired: e.pod, allocated: e.allocated.Apply(e.pod), state: e.state})
	}
	sortPending(list)
	return list
}

// decide decides about a resize and reports whether it was allocated.
func (m *Manager) decide(ctx context.Context, w pendingResize, trigger string) bool {
	m.mu.Lock()
	e := m.pods[w.desired.UID]
	m.mu.Unlock()
	if e == nil { // released in between
		return false
	}
	reason, message := m.evaluate(ctx, w)
	if ctx.Err() != nil {
		return false // the call may have been rejected because ctx is done
	}
	now, desired := time.Now(), desiredResources(w.desired, m.cfg.InitContainers).clone()
	m.mu.Lock()
	e.decided, e.isDecided = desired, true
	if reason == "" {
		e.allocated, e.allocatedAt = desired, now
	}
	m.mu.Unlock()
	if reason == "" {
		m.save(e)
	}
	info := DecisionInfo{UID: w.desired.UID, Trigger: trigger, Before: w.state.PendingReason, After: reason, Message: message}
	if !w.state.PendingSince.IsZero() {
		info.Waited = now.Sub(w.state.PendingSince)
	}
	m.change(e, func(s *ResizeState) {
		s.PendingReason, s.PendingMessage = reason, message
		if reason == "" {
			s.PendingGeneration, s.PendingSince = 0, time.Time{}
			s.InProgress, s.Error, s.InProgressGeneration = true, "", w.desired.Generation
			return
		}
		s.PendingGeneration = w.desired.Generation
		if s.PendingSince.IsZero() {
			s.PendingSince = now
		}
	})
	m.cfg.Hooks.Decided(info)
	if reason == "" {
		m.undeferred(w.desired, w.state, "accepted")
	}
	return reason == ""
}

// evaluate checks NodeConstraints, then Config.Admit.
func (m *Manager) evaluate(ctx context.Context, w pendingResize) (reason, message string) {
	if message := m.cfg.Node.Feasible(w.desired, w.allocated); message != "" {
		return v1.PodReasonInfeasible, message
	}
	rejection := m.cfg.Admit(ctx, Request{Resize: true, Pod: w.desired, Others: m.others(w.desired.UID)})
	switch {
	case rejection == nil:
		return "", ""
	case rejection.Reason == v1.PodReasonInfeasible:
		return v1.PodReasonInfeasible, rejection.Message
	default:
		return v1.PodReasonDeferred, rejection.Message
	}
}
