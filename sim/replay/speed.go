package replay

import (
	"context"
	"time"
)

// tick is the virtual time between two waits for the real clock.
const tick = 100 * time.Millisecond

// A realTicker slows virtual time down to a multiple of real time. Its zero speed has no effect.
type realTicker struct {
	ticks chan struct{} // of a goroutine outside of the bubble: virtual time stands still while one in it waits
	stop  func()
}

// ticker starts a goroutine that sends ticks until ctx is done or stop is called.
func ticker(ctx context.Context, speed float64) *realTicker {
	if speed == 0 {
		return &realTicker{stop: func() {}}
	}
	ctx, cancel := context.WithCancel(ctx)
	t := &realTicker{ticks: make(chan struct{})}
	ended := make(chan struct{})
	t.stop = func() { cancel(); <-ended }
	go func() {
		defer close(ended)
		clock := time.NewTicker(max(time.Duration(float64(tick)/speed), time.Nanosecond))
		defer clock.Stop()
		for {
			select {
			case <-clock.C:
			case <-ctx.Done():
				close(t.ticks) // the rest runs as fast as possible
				return
			}
			select {
			case t.ticks <- struct{}{}:
			case <-ctx.Done():
				close(t.ticks)
				return
			}
		}
	}()
	return t
}

// follow is called in the bubble.
func (t *realTicker) follow(ctx context.Context) {
	for t.ticks != nil && ctx.Err() == nil {
		timer := time.NewTimer(tick)
		select {
		case <-timer.C:
			<-t.ticks
		case <-ctx.Done():
			timer.Stop()
		}
	}
}
