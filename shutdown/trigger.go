package shutdown

import (
	"context"
	"time"
)

// A Trigger reports that the machine is about to stop: logind (package shutdown/logind), a
// signal ([Signals]), the program itself or its HTTP handler ([Manual]), or a polled source
// ([Poll]).
//
// A [Manager] calls Watch on a goroutine of its own, and again with a backoff after it has
// returned an error.
type Trigger interface {
	// Watch calls notify with each change. It blocks until ctx is done, releases its
	// resources and returns nil. A trigger that can delay the machine must do so from the
	// start, by delay. notify may block, but not after ctx is done. An error means that
	// changes cannot be detected for now; the last notice remains valid.
	Watch(ctx context.Context, delay time.Duration, notify func(Notice)) error
}

// A Notice is the state that a [Trigger] reports.
type Notice struct {
	// Stopping is true if the machine is about to stop, false if a shutdown was canceled.
	Stopping bool

	// Deadline is when the machine stops regardless of this node. Zero means that it waits
	// as long as requested. During a shutdown an earlier one, from any trigger, shortens the
	// remaining periods; a later one, or zero, has no effect.
	Deadline time.Time

	// Release permits the machine to stop. It is called when all pods have terminated and
	// their final statuses are recorded, when the time is up, or when the shutdown is
	// canceled. It may be called twice and must not block. Optional.
	Release func()
}
