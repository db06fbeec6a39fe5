package podworker

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// delays are the delays between two calls for a pod.
type delays struct {
	resync  time.Duration // after success
	retry   time.Duration // after an error
	network time.Duration // after ErrNetworkNotReady, and the first after runtime.ErrUnavailable
}

// failed returns the delay after err, the last of consecutive failures. A runtime that does
// not respond is usually back soon, so its first delays are 1, 2, 4 … s.
func (d delays) failed(err error, failures int) time.Duration {
	if errors.Is(err, runtime.ErrUnavailable) && failures < 10 {
		return min(d.network<<max(failures-1, 0), d.retry)
	}
	return d.retry
}

// after returns the delay until the next call for a pod, if nothing changes before. Times
// that the Handler returned are used without jitter.
func (d delays) after(now time.Time, res SyncResult, err error, failures int, jitter func(time.Duration) time.Duration) time.Duration {
	delay := d.resync
	switch {
	case errors.Is(err, ErrNetworkNotReady):
		delay = d.network
	case err != nil && res.RetryAt.IsZero():
		delay = d.failed(err, failures)
	}
	delay = jitter(delay)
	for _, at := range []time.Time{res.NextSync, res.RetryAt} {
		if !at.IsZero() {
			delay = min(delay, max(at.Sub(now), 0))
		}
	}
	return delay
}

// jittered returns a random value in d … 1.5 d, so that pods that became due together do not
// stay synchronized.
func jittered(d time.Duration) time.Duration {
	return d + time.Duration(rand.Float64()*0.5*float64(d))
}
