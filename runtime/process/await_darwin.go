package process

import (
	"context"
	"time"
)

// awaitEnd is as on Linux, but polls: kqueue does not report that the last writer
// of a FIFO has closed it (golang.org/issue/24164).
func awaitEnd(ctx context.Context, path string) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if alive, err := isAlive(path); err != nil || !alive {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
