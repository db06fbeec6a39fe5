package stats

import (
	"sync"
	"time"
)

// keepRates is how long a sample is kept of what is not seen any more (st-6).
const keepRates = 10 * time.Minute

// shortest is the least time between samples that a rate is made of: /proc counts in
// hundredths of a second.
const shortest = 100 * time.Millisecond

// rates tells how much CPU is used of late from the last two samples of how much has
// been used in all.
type rates struct {
	mu   sync.Mutex
	last map[string]sample
}

type sample struct {
	at   time.Time // by the clock of who measured
	used uint64
	rate *uint64
	seen time.Time // by ours
}

func newRates() *rates { return &rates{last: map[string]sample{}} }

// of returns the nanocores since the sample before; nil with the first one, and when
// the counter has begun anew. A sample that is hardly newer gives what the last one
// did.
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

// forget drops what has not been sampled for long.
func (r *rates) forget(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, s := range r.last {
		if now.Sub(s.seen) > keepRates {
			delete(r.last, key)
		}
	}
}
