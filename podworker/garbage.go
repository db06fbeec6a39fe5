package podworker

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// garbageRetry is the delay after the first failed collection. It doubles up to the period,
// so that a short outage of the runtime delays the removal of containers only briefly.
const garbageRetry = 5 * time.Second

// quietPeriods is the number of periods after which garbage is collected although there seems to be
// none. What other programs leave behind is found then.
const quietPeriods = 5

// collect removes terminated containers when signaled, and each period with garbage.
func (l *Loop) collect(ctx context.Context) {
	ticker := time.NewTicker(l.cfg.GarbagePeriod)
	defer ticker.Stop()
	failed, delay := false, garbageRetry
	quiet := quietPeriods      // periods since the last collection
	var again <-chan time.Time // nil: no retry is due before the next period
	for {
		retry, signaled := false, false
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-l.garbage:
			signaled = true
		case <-again:
			again, delay, retry = nil, 2*delay, true
		}
		// One collection serves all requests that have arrived.
		for pending := true; pending; {
			select {
			case <-ticker.C:
				retry = false
			case <-l.garbage:
				retry, signaled = false, true
			case <-again:
				again, delay = nil, 2*delay
			default:
				pending = false
			}
		}
		pods := l.cfg.Workers.cfg.StatusCache.Pods()
		garbage := slices.ContainsFunc(pods, l.hasGarbage)
		if quiet++; len(pods) > 0 && !garbage && !signaled && !failed && quiet < quietPeriods {
			continue
		}
		if quiet = 0; garbage {
			quiet = quietPeriods - 1 // the next collection removes what this one makes removable
		}
		err := l.cfg.Garbage.CollectGarbage(ctx, runtime.GCPolicy{MaxPerContainer: l.cfg.MaxPerContainer, Keep: l.table.Keep})
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

// hasGarbage reports whether the pod was removed, or has a container that does not run or a sandbox
// that is not ready.
func (l *Loop) hasGarbage(p *runtime.Pod) bool {
	return !l.table.Keep(p.UID) ||
		slices.ContainsFunc(p.Containers, func(c runtime.Container) bool { return c.State != runtime.ContainerRunning }) ||
		slices.ContainsFunc(p.Sandboxes, func(s runtime.Sandbox) bool { return s.State != runtime.SandboxReady })
}

// syncMirrors deletes orphaned mirror pods, and creates those of static pods that are not synced any
// more, each period and when signaled. It does not wait for the removal of containers, which takes
// minutes if the runtime is slow.
func (l *Loop) syncMirrors(ctx context.Context) {
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
		l.createMirrors(ctx)
	}
}

// createMirrors creates the missing mirror pods of static pods that have completed, or are
// terminating although their source specifies them. The mirror pods of others are created by their
// syncs. A failure is retried in the next period.
func (l *Loop) createMirrors(ctx context.Context) {
	for _, pod := range l.table.Desired() {
		_, mirror := l.table.Pod(pod.UID)
		if planMirror(pod, mirror) == (mirrorPlan{}) || !runtime.IsStatic(pod) || l.table.PodByName(pod.Namespace, pod.Name) != pod || !l.pastSync(pod.UID) {
			continue
		}
		if err := SyncMirror(ctx, l.cfg.Mirrors, pod, mirror); err != nil && ctx.Err() == nil {
			l.cfg.Logger.Warn("Failed to create mirror pod of terminated static pod; will retry", "pod", pod.Namespace+"/"+pod.Name, "podUID", pod.UID, "err", err)
		}
	}
}

// pastSync reports whether the pod has a worker that does not sync it any more.
func (l *Loop) pastSync(uid types.UID) bool {
	state, ok := l.table.State(uid)
	return ok && state > Syncing
}

// deleteMirrors deletes the orphaned mirror pods. A failure is retried in the next period.
func (l *Loop) deleteMirrors(ctx context.Context) {
	for _, mirror := range l.orphanMirrors() {
		if err := l.cfg.Mirrors.DeleteMirror(ctx, mirror); err != nil && ctx.Err() == nil {
			l.cfg.Logger.Warn("Failed to delete orphaned mirror pod; will retry", "pod", mirror.Namespace+"/"+mirror.Name, "podUID", mirror.UID, "err", err)
		}
	}
}
