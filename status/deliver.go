package status

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Run delivers the reported statuses until ctx is done; it then returns nil as soon
// as its calls of the sink have returned. Statuses that are not delivered by then,
// those of interrupted calls among them, stay outstanding for [Manager.Flush]. A
// second call returns an error.
func (m *Manager) Run(ctx context.Context) error {
	if err := m.ran.Enter("status: Manager"); err != nil {
		return err
	}
	m.drive(ctx, false)
	return nil
}

// Flush delivers what is outstanding, without regard to back-off at first, and
// returns nil when nothing is. It may be called while Run runs and after it: an
// agent that shuts down calls it with the time it has left. If ctx is done first,
// it returns an error with the number of pods that have something outstanding.
// Calls that ctx interrupts stay outstanding, and Run, if it runs, repeats them.
func (m *Manager) Flush(ctx context.Context) error {
	m.mu.Lock()
	m.queue.expedite()
	m.mu.Unlock()
	m.drive(ctx, true)

	m.mu.Lock()
	left := m.queue.len() + m.inFlight
	m.mu.Unlock()
	if left > 0 && ctx.Err() != nil {
		return fmt.Errorf("status: flush: %d pods have something undelivered: %w", left, context.Cause(ctx))
	}
	return nil
}

// Retry ends the back-off of all failed calls, for callers that have detected that the sink works
// again. If a call fails again, its back-off is doubled as after any failure.
func (m *Manager) Retry() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue.retry()
	m.wakeLocked()
}

// drive makes due calls until ctx is done or, if drain is set, until none is pending. Concurrent
// drives share the queue and its limit.
func (m *Manager) drive(ctx context.Context, drain bool) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for ctx.Err() == nil {
		c, outstanding, retryAt, changed := m.take()
		if c != nil {
			wg.Go(func() { m.deliver(ctx, c) })
			continue
		}
		if drain && outstanding == 0 {
			return
		}
		var retry <-chan time.Time
		if !retryAt.IsZero() {
			retry = time.After(time.Until(retryAt))
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-retry:
		}
	}
}

// A call is one call of the sink.
type call struct {
	e          *entry
	pod        *v1.Pod
	deleted    bool         // DeletePod, else UpdatePodStatus
	correction bool         // corrects an overwritten status (rule st-71)
	status     v1.PodStatus // to deliver
	version    uint64
	since      time.Time
}

// take returns the next call to make, or nil and the events that make one due.
func (m *Manager) take() (c *call, outstanding int, retryAt time.Time, changed <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.inFlight < m.cfg.Parallel {
		for e := m.queue.next(time.Now()); e != nil; e = m.queue.next(time.Now()) {
			if e.due() || e.overwritten {
				m.inFlight++
				return e.call(), 0, time.Time{}, nil
			}
			e.state = idle // the overwritten status has been restored
			m.pushLocked(e)
		}
		retryAt = m.queue.retryAt()
	}
	if m.changed == nil {
		m.changed = make(chan struct{})
	}
	return nil, m.queue.len() + m.inFlight, retryAt, m.changed
}

// call returns the next call of an entry that is due: its status before its deletion.
func (e *entry) call() *call {
	c := &call{e: e, pod: e.pod, version: e.version, since: e.since}
	e.since = time.Time{} // later changes belong to the next call
	if e.version == e.sent && !e.overwritten {
		c.deleted = true
		return c
	}
	c.status, c.correction = e.desired(), e.version == e.sent
	return c
}

// due reports whether a call for the entry is pending.
func (e *entry) due() bool {
	return e.version > e.sent || !e.deleted && (e.forgotten || e.finished && e.pod.DeletionTimestamp != nil)
}

// deliver makes a call and records its result.
func (m *Manager) deliver(ctx context.Context, c *call) {
	var err error
	if c.deleted {
		err = m.cfg.Sink.DeletePod(ctx, c.pod)
	} else {
		err = m.cfg.Sink.UpdatePodStatus(ctx, c.pod, c.status)
	}
	now := time.Now()
	cut := err != nil && ctx.Err() != nil // interrupted: not a failure of the sink
	if err != nil && !cut {
		m.cfg.Logger.Warn("Failed to deliver pod status; it is repeated after a back-off",
			"pod", c.pod.Namespace+"/"+c.pod.Name, "podUID", c.pod.UID, "delete", c.deleted, "err", err)
	}
	if m.cfg.Hooks.Delivered != nil {
		info := DeliveredInfo{Pod: c.pod, Deleted: c.deleted, Correction: c.correction, Err: err}
		if !c.deleted && !c.correction {
			info.Latency = now.Sub(c.since)
		}
		m.cfg.Hooks.Delivered(info)
	}
	m.returned(c, err, cut, now) // last, since the next call of the pod may begin then
}

// returned updates the entry of a call that has returned, and queues it again if it is due.
func (m *Manager) returned(c *call, err error, cut bool, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.wakeLocked()
	e := c.e
	m.inFlight--
	e.state = idle
	e.lastErr = err
	switch {
	case err != nil:
		e.since = c.since
		if !cut {
			m.queue.delay(e, now.Add(m.backoff(e.failures)))
			e.failures++
		}
	case c.deleted:
		e.failures, e.deleted = 0, true
	default:
		e.failures, e.sent = 0, c.version
		e.published, e.ready = phaseOf(&c.status), IsReady(&c.status)
		if e.overwritten {
			e.overwritten, e.corrected = false, now
			e.corrections++
		}
	}
	m.pushLocked(e)
}

// backoff returns the delay after a failed call that follows failures consecutive failed ones.
func (m *Manager) backoff(failures int) time.Duration {
	d := m.cfg.RetryMin
	for ; failures > 0 && d < m.cfg.RetryMax; failures-- {
		d *= 2
	}
	return min(d, m.cfg.RetryMax)
}

// correctIn returns the delay before an overwritten status is corrected, after that many
// consecutive corrections.
func (m *Manager) correctIn(corrections int) time.Duration {
	d, most := m.cfg.RetryMin, 10*m.cfg.RetryMax
	for ; corrections > 0 && d < most; corrections-- {
		d *= 2
	}
	return min(d, most)
}

// pushLocked queues an entry that is due and removes one that is delivered and forgotten. It is
// called again for entries in flight or in back-off.
func (m *Manager) pushLocked(e *entry) {
	if m.pods[e.pod.UID] != e {
		return // behind an older incarnation
	}
	if e.state == idle && e.recorded != nil && !e.due() && !e.deleted {
		now := time.Now()
		if e.compare(now); e.overwritten {
			m.queue.delay(e, now.Add(m.correctIn(e.corrections)))
			m.wakeLocked()
		}
	}
	switch e.state {
	case delayed:
		if e.failures > 0 || !e.due() {
			if e.recorded != nil && e.failures == 0 {
				e.compare(time.Now()) // it is in the queue anyway
			}
			return
		}
		m.queue.undelay(e) // not only a correction is due
		fallthrough
	case idle:
		// An edited entry is idle only if the call that corrects it was
		// interrupted.
		if e.due() || e.overwritten && !e.deleted {
			m.queue.add(e)
			m.wakeLocked()
			return
		}
	default:
		return
	}
	if !e.forgotten {
		return
	}
	if e.next == nil {
		delete(m.pods, e.pod.UID)
		return
	}
	m.pods[e.pod.UID] = e.next
	m.pushLocked(e.next)
}

// wakeLocked wakes each drive.
func (m *Manager) wakeLocked() {
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
}
