package podworker

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// delays are the waits between two calls for a pod.
type delays struct {
	resync  time.Duration // after success
	retry   time.Duration // after an error
	network time.Duration // after ErrNetworkNotReady, and the first after runtime.ErrUnavailable
}

// failed returns how long to wait after so many errors in a row, of which err is the
// last. A runtime that does not answer is mostly back soon, so it is asked again
// after 1, 2, 4 … s, and no one waits for the rest of the time that others wait.
func (d delays) failed(err error, failures int) time.Duration {
	if errors.Is(err, runtime.ErrUnavailable) && failures < 10 {
		return min(d.network<<max(failures-1, 0), d.retry)
	}
	return d.retry
}

// after returns how long to wait before the next call for a pod, if nothing
// happens before, and what for (the table of section 2.7). A time the Handler
// named is kept to the moment, without jitter on top (lq-9).
func (d delays) after(now time.Time, next SyncResult, err error, failures int, jitter func(time.Duration) time.Duration) (time.Duration, Wait) {
	delay, wait := d.resync, WaitResync
	switch {
	case errors.Is(err, ErrNetworkNotReady):
		delay, wait = d.network, WaitNetwork
	case err != nil && next.Retry.IsZero():
		delay, wait = d.failed(err, failures), WaitRetry
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
