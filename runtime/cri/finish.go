package cri

import (
	"context"
	"time"
)

// finishTime is how long a call that creates or starts something may continue after its
// context is done.
const finishTime = 5 * time.Second

// finishContext returns a context that is done finishTime after ctx, for calls that must
// not be interrupted. If containerd 2 loses its client during a start, it reports the
// container as exited, keeps its task, and fails to remove either. Long calls, such as
// pulls, use ctx itself.
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
