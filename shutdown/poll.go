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
	for was, told := false, false; ; {
		stopping, deadline, err := p.Ask(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("shutdown: ask: %w", err)
		case stopping != was || !told: // what an earlier Watch told may not hold any more
			tell(Notice{Stopping: stopping, Deadline: deadline})
		}
		was, told = stopping, true
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}
