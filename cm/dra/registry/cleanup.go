package registry

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// allDrivers is the name under which the slices of all drivers of the node are deleted.
const allDrivers = ""

const (
	firstCleanupRetry = time.Second
	lastCleanupRetry  = 5 * time.Minute
)

// cleanups are the drivers whose ResourceSlices are to be deleted.
type cleanups map[string]cleanup

type cleanup struct {
	at      time.Time     // of the next attempt
	wait    time.Duration // before the last attempt
	running bool
}

// schedule deletes the slices of a driver at that time, unless it is scheduled already.
func (c cleanups) schedule(driver string, at time.Time) {
	if _, ok := c[driver]; !ok {
		c[driver] = cleanup{at: at}
	}
}

// cancel keeps the slices of a driver that is connected again. An attempt in progress is
// not canceled; the driver then publishes its slices again.
func (c cleanups) cancel(driver string) { delete(c, driver) }

// due returns the drivers whose slices must be deleted now, and marks them, and when the
// next are due; zero if none is scheduled.
func (c cleanups) due(now time.Time) (drivers []string, next time.Time) {
	for _, driver := range slices.Sorted(maps.Keys(c)) {
		entry := c[driver]
		switch {
		case entry.running:
		case !entry.at.After(now):
			entry.running = true
			c[driver] = entry
			drivers = append(drivers, driver)
		case next.IsZero() || entry.at.Before(next):
			next = entry.at
		}
	}
	return drivers, next
}

// attempted stores the result of an attempt: a failed one is repeated after 1 s, 2 s,
// doubled up to 5 minutes, with a jitter of 20 %.
func (c cleanups) attempted(driver string, now time.Time, err error) {
	entry, ok := c[driver]
	if !ok || !entry.running {
		return // the driver is connected again
	}
	if err == nil {
		delete(c, driver)
		return
	}
	wait := min(max(2*entry.wait, firstCleanupRetry), lastCleanupRetry)
	jitter := time.Duration(rand.Int64N(int64(wait) / 5))
	c[driver] = cleanup{at: now.Add(wait + jitter), wait: wait}
}
