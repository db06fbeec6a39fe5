package stats

import (
	"sync"
	"time"
)

// keepRates is how long a sample is kept after it was last updated.
const keepRates = 10 * time.Minute

// shortest is the minimum time between the samples of a rate: /proc has a resolution of
// 10 ms.
const shortest = 100 * time.Millisecond

// rates calculates CPU rates from the last two samples of a counter.
type rates struct {
	mu   sync.Mutex
	last map[string]sample
}

type sample struct {
	at   time.Time // by the clock of the source
	used uint64
	rate *uint64
	seen time.Time // by the local clock
}

func newRates() *rates { return &rates{last: map[string]sample{}} }

// of returns the rate in nanocores since the previous sample; nil for the first sample
// and after the counter was reset. If the sample is hardly newer, the previous rate is
// returned.
func (r *rates) of(key string, at time.Time, used uint64) *uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.last[key]
	if ok && at.Sub(last.at) < shortest {
		last.seen = time.Now()
		r.last[key] = last
		return last.rate
	}
	next := sample{at: at, used: used, seen: time.Now()}
	if ok && used >= last.used {
		rate := uint64(float64(used-last.used) / at.Sub(last.at).Seconds())
		next.rate = &rate
	}
	r.last[key] = next
	return next.rate
}

// forget removes samples that have not been updated for keepRates.
func (r *rates) forget(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, s := range r.last {
		if now.Sub(s.seen) > keepRates {
			delete(r.last, key)
		}
	}
}
