package sim

import (
	"fmt"
	"time"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// terminationInvariants are the invariants of the termination of pods.
func terminationInvariants() []Invariant {
	return []Invariant{{
		Name: "no-sync-after-kill", Rules: "inv-1",
		Description: "after an agent has called KillPod for a pod, it does not call SyncPod for the same incarnation",
		newCheck:    notAfterKill(SyncPodCalled),
	}, {
		Name: "no-start-after-kill", Rules: "inv-2",
		Description: "after an agent has called KillPod for a pod, no container of the same incarnation is started",
		newCheck:    notAfterKill(Started),
	}, {
		Name: "grace-period-never-extended", Rules: "inv-4, pw-26",
		Description: "the grace period that an agent passes to KillPod for a pod never increases",
		newCheck:    graceNeverExtended,
	}, {
		Name: "killed-for-a-reason", Rules: "sl-56, pw-11, pw-39", requiresCurrentLists: true,
		Description: "a desired pod with a running container is killed only if it is deleted, evicted or past its deadline",
		newCheck:    killedForReason,
	}, {
		Name: "sidecars-stop-last", Rules: "inv-11, rt-116",
		Description: "within the grace period of a killed pod, its sidecars exit after all regular containers",
		newCheck:    sidecarsStopLast,
	}}
}

// notAfterKill forbids entries of a kind after a KillPod of the same agent for the same
// incarnation of the pod.
func notAfterKill(kind EntryKind) func(*truth) func(*Entry) string {
	return func(t *truth) func(*Entry) string {
		agent := 0
		return func(e *Entry) string {
			if e.Kind == AgentStarted {
				agent = e.Agent
			}
			if e.Kind != kind {
				return ""
			}
			p := t.pod(e.UID)
			// Containers belong to the incarnation that was synced last.
			if k := p.lastKill; k != nil && k.agent == agent && k.incarnation == p.syncedIncarnation {
				return "after the KillPod of " + k.at.Format(time.TimeOnly)
			}
			return ""
		}
	}
}

func graceNeverExtended(t *truth) func(*Entry) string {
	last := map[*podTruth]*kill{}
	return func(e *Entry) string {
		if e.Kind != KillPodCalled || e.Grace == nil {
			return ""
		}
		p := t.pod(e.UID)
		before := last[p]
		last[p] = p.lastKill
		if before != nil && before.grace != nil && before.agent == e.Agent && before.incarnation == incarnation(e) && *before.grace < *e.Grace {
			return fmt.Sprintf("from %d s to %d s", *before.grace, *e.Grace)
		}
		return ""
	}
}

func killedForReason(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		p := t.pod(e.UID)
		if e.Kind != KillPodCalled || p.incarnations != 1 || p.desired == nil || p.desired.DeletionTimestamp != nil || p.evictedBy == e.Agent || status.Terminal(p.desired.Status.Phase) {
			return ""
		}
		if p.desired.Spec.ActiveDeadlineSeconds != nil {
			return "" // finally-running checks pods with a deadline
		}
		for i := range p.desired.Spec.Containers {
			c := &p.desired.Spec.Containers[i]
			if n := p.newest(c.Name); n != nil && n.State == runtime.ContainerRunning {
				return fmt.Sprintf("%s was running", c.Name)
			}
		}
		return ""
	}
}

// stopped reports whether an entry is the exit of a container that the agent stopped. Simulated containers
// exit with 143 after TERM, and never by themselves.
func (t *truth) stopped(e *Entry) bool {
	return e.Kind == Exited && (e.Stopped || !t.reportsStops && e.Container.ExitCode == 143)
}

func sidecarsStopLast(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		if !t.stopped(e) {
			return ""
		}
		p := t.pod(e.UID)
		spec, init := p.container(e.Container.Name)
		k := p.lastKill
		if spec == nil || !init || !podspec.IsSidecar(spec) || spec.Image != e.Container.Image || k == nil || k.grace == nil ||
			k.incarnation != p.syncedIncarnation || // a pod with the same UID was started since then
			t.now.Sub(k.at) >= time.Duration(*k.grace)*time.Second {
			return ""
		}
		for _, c := range p.running() {
			if other, init := p.container(c.Name); other != nil && !init {
				return fmt.Sprintf("%s was stopped while %s ran", e.Container.Name, c.Name)
			}
		}
		return ""
	}
}
