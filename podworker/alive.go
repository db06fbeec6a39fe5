package podworker

import (
	"errors"
	"time"
)

// How often the Loop goes round when nothing happens, and how long it may take before
// it counts as stuck: twice the period, and five minutes at least (sv-4).
const (
	turnPeriod = time.Minute
	stuckAfter = max(2*turnPeriod, 5*time.Minute)
)

// Healthy returns an error if the Loop has not gone round for more than five minutes:
// something keeps it, such as a lock that is never given back. Before Run it is nil. It
// does not block: it is what a liveness probe of the agent asks.
func (l *Loop) Healthy() error {
	if at := l.turned.Load(); at != nil && time.Since(*at) > stuckAfter {
		return errors.New("sync Loop took longer than expected")
	}
	return nil
}

// turn begins one round. It takes the locks that all work takes, so that one which is
// never given back is noticed.
func (l *Loop) turn() {
	now := time.Now()
	l.turned.Store(&now)
	l.Synced()
	l.cfg.Workers.Known("")
}
