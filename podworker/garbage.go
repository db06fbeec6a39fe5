package podworker

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// garbageRetry is the delay after the first failed collection. It doubles up to the period,
// so that a short outage of the runtime delays the removal of containers only briefly.
const garbageRetry = 5 * time.Second

// collect removes terminated containers each period and when signaled.
func (l *Loop) collect(ctx context.Context) {
	ticker := time.NewTicker(l.cfg.GarbagePeriod)
	defer ticker.Stop()
	failed, delay := false, garbageRetry
	var again <-chan time.Time // nil: no retry is due before the next period
	for {
		retry := false
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-l.garbage:
		case <-again:
			again, delay, retry = nil, 2*delay, true
		}
		// One collection serves all requests that have arrived.
		for pending := true; pending; {
			select {
			case <-ticker.C:
				retry = false
			case <-l.garbage:
				retry = false
			case <-again:
				again, delay = nil, 2*delay
			default:
				pending = false
			}
		}
		err := l.cfg.Garbage.CollectGarbage(ctx, runtime.GCPolicy{MaxPerContainer: l.cfg.MaxPerContainer, Removed: l.removed})
		if ctx.Err() != nil {
			continue
		}
		if err != nil {
			l.cfg.Logger.Warn("Failed to collect garbage; will retry", "err", err)
			if again == nil && delay < l.cfg.GarbagePeriod {
				again = time.After(delay)
			}
			if l.cfg.Node.Name != "" && !retry {
				l.cfg.Workers.cfg.Record(runtime.Event{
					Object: l.cfg.Node, Type: v1.EventTypeWarning, Reason: "ContainerGCFailed", Message: err.Error(),
				})
			}
		} else {
			again, delay = nil, garbageRetry
			if failed {
				l.cfg.Logger.Info("Garbage collection succeeded after failures")
			}
		}
		failed = err != nil
	}
}

// removeMirrors deletes orphaned mirror pods each period and when signaled. It does not wait for
// the removal of containers, which takes minutes if the runtime is slow.
func (l *Loop) removeMirrors(ctx context.Context) {
	ticker := time.NewTicker(l.cfg.GarbagePeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-l.mirrors:
		}
		l.deleteMirrors(ctx)
	}
}

// deleteMirrors deletes the orphaned mirror pods. A failure is retried in the next period.
func (l *Loop) deleteMirrors(ctx context.Context) {
	for _, mirror := range l.orphanMirrors() {
		if err := l.cfg.Mirrors.DeleteMirror(ctx, mirror); err != nil && ctx.Err() == nil {
			l.cfg.Logger.Warn("Failed to delete orphaned mirror pod; will retry", "pod", mirror.Namespace+"/"+mirror.Name, "podUID", mirror.UID, "err", err)
		}
	}
}
