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
	m.queue.hurry()
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

// Retry makes the calls that failed again now, without waiting for their back-off to
// end: for those who learn by another way that the sink works again. If it does not,
// the next wait is longer, as after any failure.
func (m *Manager) Retry() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue.retry()
	m.wakeLocked()
}

// drive makes the calls of the sink that are due until ctx ends, or, if drain
// is set, until there are none. Several may run at once: they share the work
// and its limit. A call has a goroutine while it lasts; a pod has none.
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
	e       *entry
	pod     *v1.Pod
	deleted bool         // DeletePod, else UpdatePodStatus
	again   bool         // somebody else wrote over it (st-71)
	status  v1.PodStatus // what is said
	version uint64
	since   time.Time
}

// take returns the next call to make, or nil with what to wait for.
func (m *Manager) take() (c *call, outstanding int, retryAt time.Time, changed <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.inFlight < m.cfg.Parallel {
		for e := m.queue.next(time.Now()); e != nil; e = m.queue.next(time.Now()) {
			if e.due() || e.edited {
				m.inFlight++
				return e.call(), 0, time.Time{}, nil
			}
			e.spot = idle // what had been edited is as it should be again
			m.pushLocked(e)
		}
		retryAt = m.queue.retryAt()
	}
	if m.changed == nil {
		m.changed = make(chan struct{})
	}
	return nil, m.queue.len() + m.inFlight, retryAt, m.changed
}

// call returns what the sink is to be told next of an entry that is due:
// first its status, then its end.
func (e *entry) call() *call {
	c := &call{e: e, pod: e.pod, version: e.version, since: e.since}
	e.since = time.Time{} // changes from here on are the next call's
	if e.version == e.sent && !e.edited {
		c.deleted = true
		return c
	}
	c.status, c.again = e.say(), e.version == e.sent
	return c
}

// due reports whether the sink is to be told anything of the entry.
func (e *entry) due() bool {
	return e.version > e.sent || !e.deleted && (e.gone || e.finished && e.pod.DeletionTimestamp != nil)
}

// deliver makes a call and takes note of the outcome.
func (m *Manager) deliver(ctx context.Context, c *call) {
	var err error
	if c.deleted {
		err = m.cfg.Sink.DeletePod(ctx, c.pod)
	} else {
		err = m.cfg.Sink.UpdatePodStatus(ctx, c.pod, c.status)
	}
	now := time.Now()
	cut := err != nil && ctx.Err() != nil // by the end of ctx: not the sink's fault
	if err != nil && !cut {
		m.cfg.Logger.Warn("delivery failed, will be tried again",
			"pod", c.pod.Namespace+"/"+c.pod.Name, "uid", c.pod.UID, "delete", c.deleted, "err", err)
	}
	if m.cfg.Hooks.Delivered != nil {
		info := DeliveredInfo{Pod: c.pod, Deleted: c.deleted, Again: c.again, Err: err}
		if !c.deleted && !c.again {
			info.Latency = now.Sub(c.since)
		}
		m.cfg.Hooks.Delivered(info)
	}
	m.note(c, err, cut, now) // last: then the pod's next call may begin
}

// note moves the entry of a call that has returned to where it belongs.
func (m *Manager) note(c *call, err error, cut bool, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.wakeLocked()
	e := c.e
	m.inFlight--
	e.spot = idle
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
		e.said, e.ready = said(&c.status), IsReady(&c.status)
		if e.edited {
			e.edited, e.corrected = false, now
			e.corrections++
		}
	}
	m.pushLocked(e)
}

// backoff returns the wait after that many failures in a row before this one.
func (m *Manager) backoff(failures int) time.Duration {
	d := m.cfg.RetryMin
	for ; failures > 0 && d < m.cfg.RetryMax; failures-- {
		d *= 2
	}
	return min(d, m.cfg.RetryMax)
}

// correctIn returns how long what was edited is left, after that many corrections
// before this one.
func (m *Manager) correctIn(corrections int) time.Duration {
	d, most := m.cfg.RetryMin, 10*m.cfg.RetryMax
	for ; corrections > 0 && d < most; corrections-- {
		d *= 2
	}
	return min(d, most)
}

// pushLocked queues an entry if it is due, and drops one that is done with.
// Entries that are under way, or rest after a failure, come by here again.
func (m *Manager) pushLocked(e *entry) {
	if m.pods[e.pod.UID] != e {
		return // behind an older incarnation
	}
	if e.spot == idle && e.shown != nil && !e.due() && !e.deleted {
		now := time.Now()
		if e.compare(now); e.edited {
			m.queue.delay(e, now.Add(m.correctIn(e.corrections)))
			m.wakeLocked()
		}
	}
	switch e.spot {
	case delayed:
		if e.failures > 0 || !e.due() {
			if e.shown != nil && e.failures == 0 {
				e.compare(time.Now()) // its turn comes all the same
			}
			return
		}
		m.queue.undelay(e) // there is more to say than what was edited
		fallthrough
	case idle:
		// An edited entry is idle only if the call that corrects it was
		// interrupted.
		if e.due() || e.edited && !e.deleted {
			m.queue.add(e)
			m.wakeLocked()
			return
		}
	default:
		return
	}
	if !e.gone {
		return
	}
	if e.next == nil {
		delete(m.pods, e.pod.UID)
		return
	}
	m.pods[e.pod.UID] = e.next
	m.pushLocked(e.next)
}

// wakeLocked lets those in drive look again.
func (m *Manager) wakeLocked() {
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
}
