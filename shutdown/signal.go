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

	// Done is called when the pods have ended: the program may end. Nil: nobody
	// waits.
	Done func()
}

// Watch implements [Trigger].
func (s Signals) Watch(ctx context.Context, _ time.Duration, tell func(Notice)) error {
	got := make(chan os.Signal, 1)
	signal.Notify(got, s.On...)
	defer signal.Stop(got)
	select {
	case <-ctx.Done():
		return nil
	case <-got:
		tell(Notice{Stopping: true, Release: s.Done})
	}
	<-ctx.Done()
	return nil
}
