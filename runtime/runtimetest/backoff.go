package runtimetest

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// A backoff is the delay before the second restart of a container. Zero means
// no delay.
type backoff time.Duration

var _ plan.Delays = backoff(0)

// Peek returns the delay that follows the exit of exited[0], and when it ends.
// See [plan.Delays].
func (b backoff) Peek(_ *v1.Pod, _ *v1.Container, exited []*runtime.ContainerStatus, now time.Time) (time.Duration, time.Time) {
	d := b.after(exited[0])
	if until := exited[0].FinishedAt.Add(d); until.After(now) {
		return d, until
	}
	return d, time.Time{}
}

// after returns how long after its exit the container last is restarted. The
// delay depends on the restart count alone, so that it survives a restart of
// the caller. After a long run there is no delay; the next one continues at the
// restart count.
func (b backoff) after(last *runtime.ContainerStatus) time.Duration {
	const most = 30
	first := time.Duration(b)
	if last.RestartCount == 0 || last.FinishedAt.Sub(last.StartedAt) > 2*most*first {
		return 0
	}
	return first * time.Duration(min(most, 1<<min(last.RestartCount-1, 5)))
}
