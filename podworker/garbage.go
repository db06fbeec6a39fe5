package podworker

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// collect removes terminated containers when signaled, and each period with garbage.
func (l *Loop) collect(ctx context.Context) {
	s := newGarbageSchedule(l.cfg.GarbagePeriod, time.Now())
	timer := time.NewTimer(l.cfg.GarbagePeriod)
	defer timer.Stop()
	for {
		signaled := false
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-l.garbage:
			signaled = true
		}
		due, retry := s.wake(time.Now(), signaled || received(l.garbage), l.garbageState())
		if due {
			err := l.cfg.Garbage.CollectGarbage(ctx, runtime.GCPolicy{MaxPerContainer: l.cfg.MaxPerContainer, Keep: l.table.Keep})
			if ctx.Err() != nil {
				return
			}
			l.reportCollection(err, s.failed, retry)
			s.collected(time.Now(), err)
		}
		timer.Reset(time.Until(s.next()))
	}
}

// received receives a pending signal and reports whether there was one.
func received(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// reportCollection reports the result of a collection. A failed retry is logged only.
func (l *Loop) reportCollection(err error, failedBefore, retry bool) {
	switch {
	case err != nil:
		l.cfg.Logger.Warn("Failed to collect garbage; will retry", "err", err)
		if l.cfg.Node.Name != "" && !retry {
			l.cfg.Workers.cfg.Record(runtime.Event{
				Object: l.cfg.Node, Type: v1.EventTypeWarning, Reason: "ContainerGCFailed", Message: err.Error(),
			})
		}
	case failedBefore:
		l.cfg.Logger.Info("Garbage collection succeeded after failures")
	}
}

// garbageState returns what the runtime contains as last listed.
func (l *Loop) garbageState() garbageState {
	pods := l.cfg.Workers.cfg.StatusCache.Pods()
	switch {
	case len(pods) == 0:
		return noPods
	case slices.ContainsFunc(pods, l.hasGarbage):
		return someGarbage
	default:
		return noGarbage
	}
}

// hasGarbage reports whether the pod was removed, or has a container that does not run or a sandbox
// that is not ready.
func (l *Loop) hasGarbage(p *runtime.Pod) bool {
	return !l.table.Keep(p.UID) ||
		slices.ContainsFunc(p.Containers, func(c runtime.Container) bool { return c.State != runtime.ContainerRunning }) ||
		slices.ContainsFunc(p.Sandboxes, func(s runtime.Sandbox) bool { return s.State != runtime.SandboxReady })
}
