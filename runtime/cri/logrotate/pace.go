package logrotate

import "time"

// Limits of the intervals between checks.
const (
	// fastest is the assumed maximum rate, in bytes per second, of a writer whose
	// rate is unknown.
	fastest = 100 << 20

	// part is the fraction of MaxSize that may be written beyond it between two
	// checks.
	part = 0.02

	leastPause = 2 * time.Millisecond
	idlePause  = time.Second // where files cannot be watched
)

// A logSize is the size of a log at one check.
type logSize struct {
	at   time.Time
	size int64
}

// next returns the interval until the next check: half the time until the log is full
// at its current rate. listen reports that it grows slowly or not, so that it may be
// watched for the next write, which may have any rate.
func next(last, now logSize, max int64, period time.Duration) (in time.Duration, listen bool) {
	left := max - now.size
	if left <= 0 {
		return 0, false
	}
	grown := now.size - last.size
	if grown < 0 { // it was truncated
		grown = now.size
	}
	took := now.at.Sub(last.at)
	if last.at.IsZero() || took <= 0 || grown == 0 {
		return bound(seconds(float64(left)/fastest), period), grown == 0 && !last.at.IsZero()
	}
	rate := float64(grown) / took.Seconds()
	half := seconds(float64(left) / rate / 2)
	step := seconds(float64(max) * part / rate)
	if half < step {
		half = step
	}
	if half > idlePause {
		return bound(seconds(float64(left)/fastest), period), true
	}
	return bound(half, period), false
}

// seconds returns s seconds as a Duration, limited to its range.
func seconds(s float64) time.Duration {
	const most = 1 << 32
	return time.Duration(min(s, most) * float64(time.Second))
}

func bound(d, period time.Duration) time.Duration { return min(max(d, leastPause), period) }
