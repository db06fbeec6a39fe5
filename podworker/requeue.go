package podworker

import (
	"errors"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/pause"
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

// NewJitter returns the default of [Config].Jitter: a random value in d … 1.5 d, so that pods that
// became due together do not stay synchronized. It ends at a multiple of d/12 since the call of
// NewJitter: an idle node with many pods wakes up every five seconds for some of them, instead of
// for each. (The kubelet looks every second which pods are due.)
//
// It is for callers that wrap the default. The function is safe for concurrent use.
func NewJitter() func(uid types.UID, d time.Duration) time.Duration {
	start := time.Now()
	return func(_ types.UID, d time.Duration) time.Duration {
		return pause.Aligned(time.Since(start), d, d+d/2, d/12, rand.IntN)
	}
}
