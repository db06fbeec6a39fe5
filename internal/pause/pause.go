// Package pause waits for a while, unless it is called off, and chooses how long.
package pause

import (
	"context"
	"time"
)

// For waits for d, or for the end of ctx, which is its error. None or less is no wait.
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
