package shutdown

import (
	"context"
	"time"
)

// A Trigger tells when the machine is about to stop (F-62): logind (package
// shutdown/logind), a signal ([Signals]), the program itself or its HTTP handler
// ([Manual]), a cloud's notice ([Poll]).
//
// A [Manager] calls Watch on a goroutine of its own, and calls it again, a little
// later, when it has returned an error.
type Trigger interface {
	// Watch tells what it learns until ctx ends, and returns nil then; what it holds
	// is released by that time. Whoever can make the machine wait has it wait for
	// this node from the start, need long. tell takes its time, but no longer than
	// ctx lasts. An error says that nothing can be learned for now; what was told
	// last still holds.
	Watch(ctx context.Context, need time.Duration, tell func(Notice)) error
}

// A Notice is the word of a [Trigger].
type Notice struct {
	// Stopping: the machine is about to stop. False: it is not, after all (sh-5).
	Stopping bool

	// Deadline is when it stops whatever this node does. Zero: it waits as long as
	// was asked for. During a shutdown a nearer one, of whichever trigger, shortens
	// what is left; a later one, or none, changes nothing.
	Deadline time.Time

	// Release lets it stop: it is called when all pods have ended and their last
	// statuses are recorded, or time is up; or when it is called off. It may be called
	// twice, and must not block. Nil: nobody waits.
	Release func()
}
