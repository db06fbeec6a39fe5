package shutdown

import (
	"context"
	"fmt"
	"time"
)

// A Poll is a [Trigger] that polls a source, such as a cloud's metadata service that announces
// the preemption of a machine.
type Poll struct {
	// Query returns whether the machine is about to stop, and the deadline, zero if it is
	// unknown. Required.
	Query func(ctx context.Context) (stopping bool, deadline time.Time, err error)

	// Period between queries. Zero means 5 seconds.
	Period time.Duration
}

// Watch implements [Trigger].
func (p Poll) Watch(ctx context.Context, _ time.Duration, notify func(Notice)) error {
	period := p.Period
	if period <= 0 {
		period = 5 * time.Second
	}
	var last time.Time // the deadline of the last notice
	for was, notified := false, false; ; {
		stopping, deadline, err := p.Query(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("shutdown: query: %w", err)
		case stopping != was || !notified, // the notice of an earlier Watch may be outdated
			stopping && sooner(deadline, last):
			notify(Notice{Stopping: stopping, Deadline: deadline})
			last = deadline
		}
		was, notified = stopping, true
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(period):
		}
	}
}

// sooner reports whether a deadline is earlier than the last one by a second or more: one that
// is computed from the remaining time varies.
func sooner(deadline, last time.Time) bool {
	return !deadline.IsZero() && (last.IsZero() || last.Sub(deadline) >= time.Second)
}
