package member

import (
	"context"
	"time"
)

// factsAge is how long the node status reports the version and features of the runtime as they were
// read last. They change when the runtime is replaced.
const factsAge = time.Minute

// cached returns a function that returns the last result of read while it is at most age old. Errors
// are not cached. It is safe for concurrent use; concurrent callers share a call.
func cached[T any](age time.Duration, read func(context.Context) (T, error)) func(context.Context) (T, error) {
	turn := make(chan struct{}, 1) // held while last and at are used
	var last T
	var at time.Time
	return func(ctx context.Context) (T, error) {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
		if !at.IsZero() && time.Since(at) <= age {
			return last, nil
		}
		got, err := read(ctx)
		if err == nil {
			last, at = got, time.Now()
		}
		return got, err
	}
}
