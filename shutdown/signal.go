package shutdown

import (
	"context"
	"os"
	"os/signal"
	"time"
)

// Signals is a [Trigger] for machines that stop by sending a signal to their processes: the
// first signal to this process starts the shutdown. It cannot be canceled.
type Signals struct {
	// Signals that start the shutdown. They are not used if Received is set.
	Signals []os.Signal

	// Received is a channel that the program has passed to signal.Notify, with a capacity of
	// at least one, so that a signal during its start is not lost. If nil, Watch registers
	// Signals; before that a signal has its default effect.
	Received <-chan os.Signal

	// Done is called when the pods have terminated and the program may exit. Optional.
	Done func()
}

// Watch implements [Trigger].
func (s Signals) Watch(ctx context.Context, _ time.Duration, notify func(Notice)) error {
	received := s.Received
	if received == nil {
		c := make(chan os.Signal, 1)
		signal.Notify(c, s.Signals...)
		defer signal.Stop(c)
		received = c
	}
	select {
	case <-ctx.Done():
		return nil
	case <-received:
		notify(Notice{Stopping: true, Release: s.Done})
	}
	<-ctx.Done()
	return nil
}
