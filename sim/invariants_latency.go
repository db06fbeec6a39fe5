package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/status"
)

// latencyInvariants are the invariants of reaction times: an agent must not leave the
// reaction to an event or a change of a pod to the next resync.
func latencyInvariants() []Invariant {
	return []Invariant{{
		Name: "prompt-kill", Rules: "pw-14, pw-22",
		Description: "while there are no faults, an agent calls KillPod for a running pod within 10 seconds of its deletion, removal or eviction",
		newCheck:    promptKill,
	}, {
		Name: "prompt-sync-after-exit", Rules: "inv-12, lq-8",
		Description: "while there are no faults, a pod is synced or killed within 10 seconds of the event of an exit",
		newCheck:    promptSync,
	}, {
		Name: "prompt-report-of-replacement", Rules: "st-3, rt-104",
		Description: "while there are no faults, an instance is not reported as running for more than 10 seconds after a newer instance of its container was started",
		newCheck:    promptReplacement,
	}}
}

// reactionBound is longer than any reaction of an agent takes, and shorter than a
// resync period.
const reactionBound = 10 * time.Second

// A deadlines contains the pods on which an agent has to act.
type deadlines map[types.UID]deadline

// A deadline is the time and the cause of a reaction that is due.

type deadline struct {
	at    time.Time
	cause EntryKind
}

func (d deadlines) add(uid types.UID, at time.Time, why EntryKind) {
	if _, ok := d[uid]; !ok {
		d[uid] = deadline{at, why}
	}
}

// overdue returns a description of a deadline that has passed, and removes it; empty:
// there is none.
func (d deadlines) overdue(now time.Time) string {
	for _, uid := range slices.Sorted(maps.Keys(d)) {
		if due := d[uid]; now.Sub(due.at) > reactionBound {
			delete(d, uid)
			return fmt.Sprintf("no reaction to %[3]s of pod %[1]s for %[2]v", uid, now.Sub(due.at), due.cause)
		}
	}
	return ""
}

// killedBy reports whether the agent has called KillPod for this incarnation of the pod.
func (p *podTruth) killedBy(agent int) bool {
	return p.lastKill != nil && p.lastKill.agent == agent && p.lastKill.incarnation == p.incarnations
}

func promptKill(t *truth) func(*Entry) string {
	c := faultFree{includeEvents: true}
	due := deadlines{}
	return func(e *Entry) string {
		if c.observe(t, e) {
			clear(due)
		}
		switch e.Kind {
		case DeletionRequested, PodRemoved, Evicted:
			// A second incarnation may have to wait for the termination of the first.
			if p := t.pod(e.UID); c.holds(t) && p.incarnations == 1 && len(p.running()) > 0 && !p.killedBy(c.agent) {
				due.add(e.UID, t.now, e.Kind)
			}
		case KillPodCalled, PodAdded:
			delete(due, e.UID)
		case Exited:
			if len(t.pod(e.UID).running()) == 0 {
				delete(due, e.UID)
			}
		}
		return due.overdue(t.now)
	}
}

// promptSync does not apply to pods with containers that start or stop slowly: a sync
// of them may take long, and the next one waits for it.
func promptSync(t *truth) func(*Entry) string {
	c := faultFree{includeEvents: true}
	due, hung := deadlines{}, map[types.UID]bool{}
	return func(e *Entry) string {
		if c.observe(t, e) {
			clear(due)
		}
		switch e.Kind {
		case StepTaken:
			if e.Step.Do == Hang {
				hung[e.UID] = true
				delete(due, e.UID)
			}
		case EventReceived:
			p := t.pod(e.UID)
			if e.Event.Type == pleg.ContainerDied && c.holds(t) && p.incarnations == 1 && p.syncedIncarnation == 1 && p.desired != nil &&
				p.desired.DeletionTimestamp == nil && p.evictedBy == 0 && !p.specChanged && !startsSlowly(p) && !hung[e.UID] && !stopsSlowly(p) && !p.killedBy(c.agent) &&
				p.status != nil && !status.Terminal(p.status.Phase) {
				due.add(e.UID, t.now, e.Kind)
			}
		case SyncPodCalled, KillPodCalled, PodRemoved, DeletionRequested, Evicted, PodChanged:
			delete(due, e.UID)
		}
		return due.overdue(t.now)
	}
}

// promptReplacement does not apply to pods with containers that start or stop slowly: an agent reports the others after
// these. A postStart hook may take any time, and must not delay the report.
func promptReplacement(t *truth) func(*Entry) string {
	type replaced struct {
		p    *podTruth
		name string
		at   time.Time
	}
	c := faultFree{includeEvents: true}
	due, hung := map[string]replaced{}, map[types.UID]bool{} // due by the ID of the old instance
	return func(e *Entry) string {
		if c.observe(t, e) {
			clear(due)
		}
		switch e.Kind {
		case StepTaken:
			hung[e.UID] = hung[e.UID] || e.Step.Do == Hang
		case Started:
			p := t.pod(e.UID)
			if p.status == nil || p.spec == nil || p.incarnations != 1 || !c.holds(t) || p.killedBy(c.agent) || hung[e.UID] || stopsSlowly(p) || delaysStart(p) {
				break
			}
			for s := range containerStatuses(p.status) {
				if s.Name == e.Container.Name && s.State.Running != nil && s.ContainerID != e.Container.ID {
					due[s.ContainerID] = replaced{p, s.Name, t.now}
				}
			}
		case KillPodCalled, PodRemoved, DeletionRequested, Evicted:
			maps.DeleteFunc(due, func(_ string, r replaced) bool { return r.p.uid == e.UID })
		}
		for _, id := range slices.Sorted(maps.Keys(due)) {
			r := due[id]
			if s := r.p.containerStatus(r.name, id); s == nil || s.State.Running == nil {
				delete(due, id)
			} else if t.now.Sub(r.at) > reactionBound {
				delete(due, id)
				return fmt.Sprintf("%s of pod %s is reported as running, and a newer instance of %s was started %v ago", id, r.p.uid, r.name, t.now.Sub(r.at))
			}
		}
		return ""
	}
}

// stopsSlowly reports whether a container of the pod ignores TERM or has a StopDelay.
func stopsSlowly(p *podTruth) bool {
	for _, c := range slices.Concat(p.spec.Spec.InitContainers, p.spec.Spec.Containers) {
		if does, err := ImageBehavior(c.Image); err != nil || does.IgnoreTERM || does.StopDelay > 0 {
			return true
		}
	}
	return false
}
