package logrotate

import "time"

// The pace of looks.
const (
	// fastest is how many bytes a second a writer is thought to write at most of
	// whom nothing was heard so far.
	fastest = 100 << 20

	// part of MaxSize is what may be written beyond it between two looks.
	part = 0.02

	leastPause = 2 * time.Millisecond
	idlePause  = time.Second // where the file system tells of nothing
)

// A look is what was seen of a log.
type look struct {
	at   time.Time
	size int64
}

// next says when to look again at a log of which the last two looks are known:
// halfway to when it is full at its present rate, so that a growing one is caught
// in time. listen says that it grows slowly or not at all: from then on the file
// system may tell of the next one who writes, of whom any rate may be expected.
func next(last, now look, max int64, period time.Duration) (in time.Duration, listen bool) {
	left := max - now.size
	if left <= 0 {
		return 0, false
	}
	grown := now.size - last.size
	if grown < 0 { // somebody has cut it
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

// seconds is a duration, and of one that none can hold a very long one.
func seconds(s float64) time.Duration {
	const most = 1 << 32
	return time.Duration(min(s, most) * float64(time.Second))
}

func bound(d, period time.Duration) time.Duration { return min(max(d, leastPause), period) }
