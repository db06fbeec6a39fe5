package shutdown

import (
	"context"
	"fmt"
	"time"
)

// A Poll is a [Trigger] that asks again and again: a cloud's metadata service says so
// that it will take a machine back.
type Poll struct {
	// Ask returns whether the machine is about to stop, and when at the latest; the
	// zero time: it does not say. Required.
	Ask func(ctx context.Context) (stopping bool, deadline time.Time, err error)

	// Every so often. Zero: 5 seconds.
	Every time.Duration
}

// Watch implements [Trigger].
func (p Poll) Watch(ctx context.Context, _ time.Duration, tell func(Notice)) error {
	every := p.Every
	if every <= 0 {
		every = 5 * time.Second
	}
	var by time.Time // the deadline that was told
	for was, told := false, false; ; {
		stopping, deadline, err := p.Ask(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("shutdown: ask: %w", err)
		case stopping != was || !told, // what an earlier Watch told may not hold any more
			stopping && sooner(deadline, by):
			tell(Notice{Stopping: stopping, Deadline: deadline})
			by = deadline
		}
		was, told = stopping, true
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

// sooner reports whether a deadline is nearer than what was told: one that is reckoned
// from how long there is left wavers.
func sooner(deadline, told time.Time) bool {
	return !deadline.IsZero() && (told.IsZero() || told.Sub(deadline) >= time.Second)
}
