package podworker

import (
	"errors"
	"math/rand/v2"
	"time"
)

// delays are the waits between two calls for a pod.
type delays struct {
	resync  time.Duration // after success
	retry   time.Duration // after an error
	network time.Duration // after ErrNetworkNotReady
}

// after returns how long to wait before the next call for a pod, if nothing
// happens before, and what for (the table of section 2.7). A time the Handler
// named is kept to the moment, without jitter on top (lq-9).
func (d delays) after(now time.Time, next Next, err error, jitter func(time.Duration) time.Duration) (time.Duration, Wait) {
	delay, wait := d.resync, WaitResync
	switch {
	case errors.Is(err, ErrNetworkNotReady):
		delay, wait = d.network, WaitNetwork
	case err != nil && next.Retry.IsZero():
		delay, wait = d.retry, WaitRetry
	}
	delay = jitter(delay)
	for _, named := range []struct {
		at   time.Time
		wait Wait
	}{{next.At, WaitDeadline}, {next.Retry, WaitBackoff}} {
		if left := max(named.at.Sub(now), 0); !named.at.IsZero() && left < delay {
			delay, wait = left, named.wait
		}
	}
	if _, ok := errors.AsType[*leftOverError](err); ok {
		wait = WaitLeftOver
	}
	return delay, wait
}

// jittered spreads d over d … 1.5 d, so that the pods of a node that started
// together don't stay together.
func jittered(d time.Duration) time.Duration {
	return d + time.Duration(rand.Float64()*0.5*float64(d))
}
