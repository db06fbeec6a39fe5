package images

import (
	"context"
	"errors"

	"golang.org/x/time/rate"
)

// A limiter limits the rate at which pulls begin. Pulls above the limit wait in order
// of arrival.
type limiter struct {
	rate   *rate.Limiter
	refuse bool // fail instead of waiting

	// turn is held by the only waiter on rate, so that a canceled reservation is
	// returned in full.
	turn chan struct{}
}

func newLimiter(qps float64, burst int, refuse bool) *limiter {
	if qps == 0 {
		qps = 5
	}
	if burst == 0 {
		burst = 10
	}
	limit := rate.Limit(qps)
	if qps < 0 {
		limit = rate.Inf
	}
	return &limiter{rate: rate.NewLimiter(limit, burst), refuse: refuse, turn: make(chan struct{}, 1)}
}

// wait blocks until a pull may begin or ctx is done. A canceled call does not count
// towards the limit.
func (l *limiter) wait(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.turn }()
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.refuse {
		if !l.rate.Allow() {
			return errors.New("pull QPS exceeded")
		}
		return nil
	}
	return l.rate.Wait(ctx)
}
