package podworker

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// keepHouse settles and sweeps when there is reason to, on a goroutine of its
// own: sources and events don't wait for it (F-77, L-56, lq-11). It takes one
// pod at a time, so that whoever needs the same locks gets in between.
func (l *Loop) keepHouse(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.cfg.Workers.finished:
			l.Settle()
		case <-l.sweep:
			l.Settle()
			l.Sweep()
		}
	}
}

// Settle drops the lives that are finished and not wanted, and starts over those
// that were wanted anew meanwhile (sl-54). Run calls it when a life ends. It
// looks at what has finished since the last time, not at all pods.
func (l *Loop) Settle() {
	forgetter, _ := l.cfg.Workers.cfg.Handler.(Forgetter)
	for _, uid := range l.cfg.Workers.takeSettled() {
		pod, forgotten := l.cfg.Workers.forget(uid, l.wants(uid))
		if !forgotten {
			if removable, _ := l.cfg.Workers.Removable(uid); removable {
				signal(l.garbage) // an evicted pod gives back what it held, though it stays (cg-10)
			}
			continue
		}
		signal(l.garbage)
		if pod != nil && forgetter != nil {
			forgetter.Forget(pod) // also if it starts over: this life is done with
		}
		l.startOver(uid)
	}
}

func (l *Loop) wants(uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wanted.pods[uid] != nil
}

// startOver begins the life of a pod that is wanted and has none.
func (l *Loop) startOver(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Not as it was before: a pod that was removed since must not start.
	pod := l.wanted.pods[uid]
	if pod == nil {
		return
	}
	if _, known := l.cfg.Workers.Known(uid); !known {
		l.cfg.Hooks.Restarted(pod)
		l.startLocked(pod, true)
	}
}

// Sweep ends what runs in the runtime and nobody wants (sl-56), once the source
// that might want it has synced. Run calls it when the runtime or the wanted set
// changed.
func (l *Loop) Sweep() {
	// The list is taken before the wanted set is looked at, so that a pod which
	// is added between the two is not taken for an orphan.
	for _, pod := range l.cfg.Workers.cfg.Pods() {
		if running(pod) && l.endOrphan(pod) {
			l.cfg.Logger.Info("Terminating orphaned pod", "pod", pod.Namespace+"/"+pod.Name, "podUID", pod.UID, "running", parts(pod))
			l.cfg.Hooks.Orphan(pod)
		}
	}
	if l.takeHeard() || l.cfg.Mirrors != nil && len(l.strayMirrors()) > 0 {
		signal(l.garbage)
	}
}

// parts names what of the pod runs: a ready sandbox alone is a sign of a runtime whose
// KillPod leaves it.
func parts(pod *runtime.Pod) []string {
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

// takeHeard reports whether the last source has spoken since it was asked last:
// now it is known of which pods nothing has to be kept.
func (l *Loop) takeHeard() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	heard := l.heard
	l.heard = false
	return heard
}

// endOrphan ends a pod of the runtime, and reports true, if nobody wants it.
func (l *Loop) endOrphan(pod *runtime.Pod) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wanted.pods[pod.UID] != nil || !l.haveSpokenLocked(pod.Source) {
		return false
	}
	if _, known := l.cfg.Workers.Known(pod.UID); known {
		return false
	}
	l.cfg.Workers.KillOrphan(pod)
	return true
}

// haveSpokenLocked reports whether all have spoken who might want a pod of that
// source: the source itself, or, if it is not known (any more), every source.
// So the static pods of a changed manifest give way to the new ones while the
// API server is away (L-28, lq-30).
func (l *Loop) haveSpokenLocked(source string) bool {
	if slices.Contains(l.cfg.Sources, source) {
		return l.synced[source]
	}
	return len(l.silentLocked()) == 0
}

// running reports whether a list shows anything of pod that has to be stopped.
// What the runtime lost track of may run.
func running(pod *runtime.Pod) bool {
	return slices.ContainsFunc(pod.Containers, func(c runtime.Container) bool {
		return c.State == runtime.ContainerRunning || c.State == runtime.ContainerUnknown
	}) || slices.ContainsFunc(pod.Sandboxes, func(s runtime.Sandbox) bool {
		return s.State == runtime.SandboxReady
	})
}

// garbagePause is how long after a collection that has failed it is tried again.
// It doubles, up to the period: what could be a short outage of the runtime does
// not have a removed pod's leftovers stay for all of that.
const garbagePause = 5 * time.Second

// collect removes what is dead, and mirrors of what is gone, each period and
// when told.
func (l *Loop) collect(ctx context.Context) {
	ticker := time.NewTicker(l.cfg.GarbagePeriod)
	defer ticker.Stop()
	failed, pause := false, garbagePause
	var again <-chan time.Time // nil: the last one did not fail, or the period will do
	for {
		retry := false
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-l.garbage:
		case <-again:
			again, pause, retry = nil, 2*pause, true
		}
		// One collection does for all who have asked for one by now.
		for asked := true; asked; {
			select {
			case <-ticker.C:
				retry = false
			case <-l.garbage:
				retry = false
			case <-again:
				again, pause = nil, 2*pause
			default:
				asked = false
			}
		}
		l.deleteMirrors(ctx)
		if l.cfg.Garbage == nil {
			continue
		}
		err := l.cfg.Garbage.CollectGarbage(ctx, runtime.GCPolicy{MaxPerContainer: l.cfg.KeepDead, Removed: l.removed})
		if ctx.Err() != nil {
			continue
		}
		if err != nil {
			l.cfg.Logger.Warn("garbage collection failed", "err", err)
			if again == nil && pause < l.cfg.GarbagePeriod {
				again = time.After(pause)
			}
			if l.cfg.Node.Name != "" && !retry {
				l.cfg.Workers.cfg.Record(runtime.Event{
					Object: l.cfg.Node, Type: v1.EventTypeWarning, Reason: "ContainerGCFailed", Message: err.Error(),
				})
			}
		} else {
			again, pause = nil, garbagePause
			if failed {
				l.cfg.Logger.Info("garbage collection works again")
			}
		}
		failed = err != nil // cg-9
	}
}

// removed reports whether nothing of the pod need be kept (rt-129).
func (l *Loop) removed(uid types.UID) bool {
	if removable, known := l.cfg.Workers.Removable(uid); known {
		return removable
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wanted.pods[uid] == nil && len(l.silentLocked()) == 0
}

// strayMirrors returns the mirrors to be deleted: those without a static pod,
// unless one of that name has yet to stop (sl-53). Who wants the static pod may
// not have spoken yet, so all sources are waited for.
func (l *Loop) strayMirrors() (stray []*v1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.silentLocked()) > 0 {
		return nil
	}
	for _, mirror := range l.wanted.orphanMirrors() {
		if !l.cfg.Workers.stopping(runtime.PodFullName(mirror)) {
			stray = append(stray, mirror)
		}
	}
	return stray
}

// deleteMirrors deletes the stray ones. What fails is tried again in the next
// period.
func (l *Loop) deleteMirrors(ctx context.Context) {
	if l.cfg.Mirrors == nil {
		return
	}
	for _, mirror := range l.strayMirrors() {
		if err := l.cfg.Mirrors.DeleteMirror(ctx, mirror); err != nil && ctx.Err() == nil {
			l.cfg.Logger.Warn("deleting a mirror pod failed", "pod", mirror.Namespace+"/"+mirror.Name, "uid", mirror.UID, "err", err)
		}
	}
}
