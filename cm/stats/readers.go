package stats

import (
	"slices"
	"time"
)

// demandAge is how long after a read the next one is still expected.
const demandAge = 2 * time.Minute

// readers predicts when cached values are read, from the time between the last reads: monitors read
// periodically. The zero value has had no reader.
type readers struct {
	last time.Time
	gaps [4]time.Duration // between reads, newest first; zero: there was none
}

// read returns the readers after a read. Reads within a second count as one: a monitor reads several
// endpoints.
func (r readers) read(now time.Time) readers {
	gap := now.Sub(r.last)
	switch {
	case r.last.IsZero() || gap > demandAge:
		return readers{last: now}
	case gap < time.Second:
		return r
	}
	copy(r.gaps[1:], r.gaps[:])
	r.last, r.gaps[0] = now, gap
	return r
}

// expected reports whether a read is expected before t. The first read is not known to be followed by
// another. Of several readers, those that read rarely are predicted by the longest time between reads.
func (r readers) expected(now, t time.Time) bool {
	gap := slices.Max(r.gaps[:])
	return gap > 0 && now.Sub(r.last) <= demandAge && !t.Before(r.last.Add(gap))
}
