package images

import (
	"context"
	"errors"
	"time"
)

// A limiter lets one pull begin every interval, and burst of them at once after
// a quiet time. Who is over that waits, first come, first served (lq-16).
type limiter struct {
	interval time.Duration // zero: no limit
	burst    int
	refuse   bool // instead of waiting

	turn chan struct{} // held by who looks at full
	full time.Time     // when burst pulls may begin at once again
}

func newLimiter(qps float64, burst int, refuse bool) *limiter {
	if qps < 0 {
		return &limiter{}
	}
	if qps == 0 {
		qps = 5
	}
	if burst == 0 {
		burst = 10
	}
	return &limiter{
		interval: time.Duration(float64(time.Second) / qps),
		burst:    burst, refuse: refuse, turn: make(chan struct{}, 1),
	}
}

// wait returns when a pull may begin, or ctx ended. One that was called off
// takes nobody's place.
func (l *limiter) wait(ctx context.Context) error {
	if l.interval == 0 {
		return ctx.Err()
	}
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.turn }()
	if err := ctx.Err(); err != nil {
		return err
	}
	now := time.Now()
	if l.full.Before(now) {
		l.full = now
	}
	// A pull may begin while fewer than burst others are still to be paid for.
	if early := l.full.Sub(now) - time.Duration(l.burst-1)*l.interval; early > 0 {
		if l.refuse {
			return errors.New("pull QPS exceeded")
		}
		timer := time.NewTimer(early)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	l.full = l.full.Add(l.interval)
	return nil
}
