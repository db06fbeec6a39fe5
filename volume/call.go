package volume

import (
	"context"
	"time"
)

// A call that ignores its context, because a file system or a driver does not answer, is abandoned: its
// goroutine remains until it returns.
const (
	callWait  = 10 * time.Second // for the calls that one pod makes the caller wait for
	leastWait = time.Second      // for a call after the others of the pod have used up callWait
	stopGrace = 2 * time.Second  // for a canceled call
)

// await reports whether done is closed within limit and, once ctx is done, within stopGrace.
func await(ctx context.Context, done <-chan struct{}, limit time.Duration) bool {
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-done:
		return true
	case <-late.C:
		return false
	case <-ctx.Done():
	}
	late.Reset(min(limit, stopGrace))
	select {
	case <-done:
		return true
	case <-late.C:
		return false
	}
}
