package shutdown

import (
	"context"
	"os"
	"os/signal"
	"time"
)

// Signals is a [Trigger] for machines that stop by ending their programs: the first of
// these signals to this process begins it. It cannot be called off.
type Signals struct {
	On []os.Signal

	// Got has those that have come since the program asked for them by itself, with
	// room for one at least (signal.Notify): one that comes while it starts is not
	// lost then. Nil: On is asked for when the trigger is watched; until then such a
	// signal does what it does to any program.
	Got <-chan os.Signal

	// Done is called when the pods have ended: the program may end. Nil: nobody
	// waits.
	Done func()
}

// Watch implements [Trigger].
func (s Signals) Watch(ctx context.Context, _ time.Duration, tell func(Notice)) error {
	from := s.Got
	if from == nil {
		got := make(chan os.Signal, 1)
		signal.Notify(got, s.On...)
		defer signal.Stop(got)
		from = got
	}
	select {
	case <-ctx.Done():
		return nil
	case <-from:
		tell(Notice{Stopping: true, Release: s.Done})
	}
	<-ctx.Done()
	return nil
}
