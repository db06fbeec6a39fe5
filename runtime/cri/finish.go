package cri

import (
	"context"
	"time"
)

// finishTime is how long a call that makes or starts something may still take
// when its context has ended.
const finishTime = 5 * time.Second

// finish returns a context for a call that should not be broken off in the
// middle: it ends only some time after ctx. A runtime that loses its client while
// it starts something may lose the thread: containerd 2 then calls the container
// exited, keeps its task, and refuses to remove either. What takes long, such as
// a pull, gets ctx itself.
func finishContext(ctx context.Context) (context.Context, context.CancelFunc) {
	patient, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(finishTime):
			cancel()
		case <-patient.Done():
		}
	})
	return patient, func() {
		stop()
		cancel()
	}
}
