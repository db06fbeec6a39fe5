package sim

import (
	"fmt"
	"time"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// endLaws are about the ends of pods: when they come, and in what order.
func endLaws() []Invariant {
	return []Invariant{{
		Name: "no-sync-after-kill", Rules: "inv-1",
		Says:  "an agent that has begun to kill a pod does not sync it again in that life",
		begin: afterKill(SyncBegan),
	}, {
		Name: "no-start-after-kill", Rules: "inv-2",
		Says:  "no container of a pod is started after the agent has begun to kill it, in that life",
		begin: afterKill(Started),
	}, {
		Name: "grace-only-shrinks", Rules: "inv-4, pw-26",
		Says:  "the grace period that an agent gives to a pod never grows from one KillPod to the next",
		begin: graceShrinks,
	}, {
		Name: "killed-for-cause", Rules: "sl-56, pw-11, pw-39", lists: true,
		Says:  "a pod that is wanted, and has containers to run, is killed only if it is deleted, evicted or past its deadline",
		begin: killedForCause,
	}, {
		Name: "sidecars-last", Rules: "inv-11, rt-116",
		Says:  "within its grace period, a sidecar of a pod that is killed ends after every regular container",
		begin: sidecarsLast,
	}}
}

// afterKill forbids entries of a kind after a KillPod of the same agent in the
// same life of the pod.
func afterKill(kind EntryKind) func(*truth) func(*Entry) string {
	return func(t *truth) func(*Entry) string {
		agent := 0
		return func(e *Entry) string {
			if e.Kind == AgentBegan {
				agent = e.Agent
			}
			if e.Kind != kind {
				return ""
			}
			p := t.pod(e.UID)
			// What is started belongs to the life that was synced last.
			if k := p.killing; k != nil && k.agent == agent && k.life == p.synced {
				return "after the KillPod of " + k.at.Format(time.TimeOnly)
			}
			return ""
		}
	}
}

func graceShrinks(t *truth) func(*Entry) string {
	last := map[*podTruth]*killing{}
	return func(e *Entry) string {
		if e.Kind != KillBegan || e.Grace == nil {
			return ""
		}
		p := t.pod(e.UID)
		before := last[p]
		last[p] = p.killing
		if before != nil && before.grace != nil && before.agent == e.Agent && before.life == life(e) && *before.grace < *e.Grace {
			return fmt.Sprintf("from %d s to %d s", *before.grace, *e.Grace)
		}
		return ""
	}
}

func killedForCause(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		p := t.pod(e.UID)
		if e.Kind != KillBegan || p.lives != 1 || p.wanted == nil || p.wanted.DeletionTimestamp != nil || p.evicted == e.Agent || status.Terminal(p.wanted.Status.Phase) {
			return ""
		}
		if p.wanted.Spec.ActiveDeadlineSeconds != nil {
			return "" // whether that was right, the end of the run shows
		}
		for i := range p.wanted.Spec.Containers {
			c := &p.wanted.Spec.Containers[i]
			if n := p.newest(c.Name); n != nil && n.State == runtime.ContainerRunning {
				return fmt.Sprintf("%s ran, and had reason to", c.Name)
			}
		}
		return ""
	}
}

// sidecarsLast goes by exit codes: 143 is what simulated containers end with
// after a TERM, and none ends so by itself.
func sidecarsLast(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		if e.Kind != Exited || e.Container.ExitCode != 143 {
			return ""
		}
		p := t.pod(e.UID)
		spec, init := p.container(e.Container.Name)
		k := p.killing
		if spec == nil || !init || !podspec.IsSidecar(spec) || spec.Image != e.Container.Image || k == nil || k.grace == nil ||
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
