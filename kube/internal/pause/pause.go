// Package pause waits for a duration or a context.
package pause

import (
	"context"
	"time"
)

// For blocks for d and returns nil, or returns the error of ctx as soon as ctx is done.
// It does not block if d is zero or negative.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
