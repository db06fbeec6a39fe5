package podworker

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

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
