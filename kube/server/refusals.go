package server

import (
	"sync"
	"time"
)

// maxRefusals is the maximum number of refused requests that are logged in a second.
const maxRefusals = 10

// refusals limits the log lines about refused requests, which any client can cause. The zero value
// is ready to use.
type refusals struct {
	mu         sync.Mutex // guards the fields below
	second     time.Time  // when the current second began
	logged     int        // in the current second
	suppressed int        // since the last one that was logged
}

// allow reports whether a refused request is logged, and the number of those before it that were
// not.
func (l *refusals) allow(now time.Time) (ok bool, suppressed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.second) >= time.Second {
		l.second, l.logged = now, 0
	}
	if l.logged >= maxRefusals {
		l.suppressed++
		return false, 0
	}
	l.logged++
	suppressed, l.suppressed = l.suppressed, 0
	return true, suppressed
}
