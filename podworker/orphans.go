package podworker

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
)

// runSweeps settles and sweeps when signaled. It has a goroutine of its own, so that sources
// and events do not wait for it, and locks for one pod at a time.
func (l *Loop) runSweeps(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.cfg.Workers.finished:
			l.settle()
		case <-l.sweep:
			l.settle()
			l.terminateOrphans()
		}
	}
}

// settle forgets the pods that have finished and are not desired, and starts those again that
// a source has added meanwhile. It only examines pods that have finished or changed since the
// last time.
func (l *Loop) settle() {
	l.settling.Lock()
	defer l.settling.Unlock()
	l.settleLocked()
}

func (l *Loop) settleLocked() {
	var forgotten []types.UID
	for _, uid := range l.cfg.Workers.takeSettled() {
		switch {
		case l.cfg.Workers.forgetSettled(uid, l.table.desiredPod(uid) != nil):
			forgotten = append(forgotten, uid)
		case l.table.hasRemovable(uid):
			signal(l.garbage) // the resources of an evicted pod are released while its object exists
		}
	}
	if len(forgotten) == 0 {
		return
	}
	signal(l.garbage)
	signal(l.mirrors)
	l.retainOthers(forgotten)
	for _, uid := range forgotten {
		l.restart(uid)
	}
}

// retainOthers has the Handler release its state of pods whose workers were removed.
func (l *Loop) retainOthers(forgotten []types.UID) {
	handler, ok := compose.As[Retainer](l.cfg.Workers.cfg.Handler)
	if !ok {
		return
	}
	keep := func(uid types.UID) bool { return !slices.Contains(forgotten, uid) }
	if len(forgotten) > 8 {
		set := make(map[types.UID]bool, len(forgotten))
		for _, uid := range forgotten {
			set[uid] = true
		}
		keep = func(uid types.UID) bool { return !set[uid] }
	}
	if err := handler.Retain(context.Background(), keep); err != nil {
		l.cfg.Logger.Error("Failed to release the state of removed pods", "err", err)
	}
}

// restart creates a worker for a desired pod that has none.
func (l *Loop) restart(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// A pod that was removed since must not start.
	pod := l.table.desiredPod(uid)
	if pod == nil {
		return
	}
	if _, ok := l.table.State(uid); !ok {
		l.cfg.Hooks.Restarted(pod)
		l.updateLocked(pod, true)
	}
}

// terminateOrphans terminates the orphaned pods whose source has synced.
func (l *Loop) terminateOrphans() {
	// The pods are listed before the desired set is read, so that a pod that is added in
	// between is not considered an orphan.
	for _, pod := range l.cfg.Workers.cfg.StatusCache.Pods() {
		if pod.MayRun() && l.terminateOrphan(pod) {
			l.cfg.Logger.Info("Terminating orphaned pod", "pod", pod.Namespace+"/"+pod.Name, "podUID", pod.UID, "running", runningParts(pod))
			l.cfg.Hooks.Orphan(pod)
		}
	}
	if l.takeAllSynced() {
		signal(l.garbage)
	}
	if l.cfg.Mirrors != nil && len(l.orphanMirrors()) > 0 {
		signal(l.mirrors)
	}
}

// runningParts lists the running containers and ready sandboxes: a ready sandbox without
// containers indicates a runtime whose KillPod does not stop it.
func runningParts(pod *runtime.Pod) []string {
	var names []string
	for _, sb := range pod.Sandboxes {
		if sb.State == runtime.SandboxReady {
			names = append(names, "sandbox "+sb.ID)
		}
	}
	for _, c := range pod.Containers {
		if c.State == runtime.ContainerRunning {
			names = append(names, "container "+c.Name)
		}
	}
	return names
}

// takeAllSynced reports whether all sources have synced since the last call: from then on the
// garbage of removed pods can be identified.
func (l *Loop) takeAllSynced() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.allSynced
	l.allSynced = false
	return all
}

// terminateOrphan terminates the pod and reports true if it is an orphan.
func (l *Loop) terminateOrphan(pod *runtime.Pod) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.table.desiredPod(pod.UID) != nil || !l.table.sourceSynced(pod.Source) {
		return false
	}
	if _, ok := l.table.State(pod.UID); ok {
		return false
	}
	l.cfg.Workers.killOrphan(pod)
	return true
}

// orphanMirrors returns the mirror pods without a static pod, except those whose static pod
// is terminating.
func (l *Loop) orphanMirrors() []*v1.Pod {
	return slices.DeleteFunc(l.table.orphanMirrors(), func(mirror *v1.Pod) bool {
		return l.cfg.Workers.terminating(runtime.PodFullName(mirror))
	})
}
