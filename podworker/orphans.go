package podworker

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

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
	f, _ := l.cfg.Workers.cfg.Handler.(forgetter)
	for _, uid := range l.cfg.Workers.takeSettled() {
		pod, forgotten := l.cfg.Workers.forgetSettled(uid, l.isDesired(uid))
		if !forgotten {
			if removable, _ := l.cfg.Workers.Removable(uid); removable {
				signal(l.garbage) // the resources of an evicted pod are released while its object exists
			}
			continue
		}
		signal(l.garbage)
		signal(l.mirrors)
		if pod != nil && f != nil {
			f.Forget(pod)
		}
		l.restart(uid)
	}
}

func (l *Loop) isDesired(uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.desired.pods[uid] != nil
}

// restart creates a worker for a desired pod that has none.
func (l *Loop) restart(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// A pod that was removed since must not start.
	pod := l.desired.pods[uid]
	if pod == nil {
		return
	}
	if _, ok := l.cfg.Workers.State(uid); !ok {
		l.cfg.Hooks.Restarted(pod)
		l.updateLocked(pod, true)
	}
}

// terminateOrphans terminates the orphaned pods whose source has synced.
func (l *Loop) terminateOrphans() {
	// The pods are listed before the desired set is read, so that a pod that is added in
	// between is not considered an orphan.
	for _, pod := range l.cfg.Workers.cfg.Pods() {
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

// takeAllSynced reports whether all sources have synced since the last call: from then on
// the garbage of removed pods can be identified.
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
	if l.desired.pods[pod.UID] != nil || !l.sourceSyncedLocked(pod.Source) {
		return false
	}
	if _, ok := l.cfg.Workers.State(pod.UID); ok {
		return false
	}
	l.cfg.Workers.KillOrphan(pod)
	return true
}

// sourceSyncedLocked reports whether the source has synced, or every source if it is not
// configured. Static pods of a changed manifest are therefore replaced while the API server
// is not reachable.
func (l *Loop) sourceSyncedLocked(source string) bool {
	if slices.Contains(l.cfg.Sources, source) {
		return l.synced[source]
	}
	return len(l.unsyncedLocked()) == 0
}

// removed reports whether the containers of the pod may be removed.
func (l *Loop) removed(uid types.UID) bool {
	if removable, ok := l.cfg.Workers.Removable(uid); ok {
		return removable
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.desired.pods[uid] == nil && len(l.unsyncedLocked()) == 0
}

// orphanMirrors returns the mirror pods without a static pod, except those whose static pod
// is terminating. It returns none before all sources have synced, because one of them may
// specify the static pod.
func (l *Loop) orphanMirrors() (orphans []*v1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.unsyncedLocked()) > 0 {
		return nil
	}
	for _, mirror := range l.desired.orphanMirrors() {
		if !l.cfg.Workers.terminating(runtime.PodFullName(mirror)) {
			orphans = append(orphans, mirror)
		}
	}
	return orphans
}
