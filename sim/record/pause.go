package record

import (
	"context"
	"time"
)

// A Pause reports that the process did not run for Took: it was suspended, or the machine was overloaded. The
// process may have run for a second of this time.
type Pause struct {
	Took time.Duration `json:"took"`
}

const (
	beatPeriod = time.Second
	leastPause = 5 * beatPeriod / 2 // without a notification and without a beat
)

// beat notifies the recorder each second until ctx is done, so that pauses are detected.
func (r *Recorder) beat(ctx context.Context) {
	r.mu.Lock()
	r.beats, r.ran = true, time.Since(r.start)
	r.mu.Unlock()
	ticker := time.NewTicker(beatPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.mu.Lock()
			r.runsLocked(time.Since(r.start))
			r.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

// runsLocked queues a Pause if the process did not run between the last notification or beat and at.
func (r *Recorder) runsLocked(at time.Duration) {
	gap := at - r.ran
	r.ran = at
	if r.beats && !r.stopped && gap >= leastPause {
		r.queueLocked(entry{at: at, size: entryBytes, frame: func(*encoder) Frame { return Frame{Pause: &Pause{Took: gap}} }})
	}
}
