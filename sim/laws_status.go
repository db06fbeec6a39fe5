package sim

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// statusLaws are about what the sink is told.
func statusLaws() []Invariant {
	return []Invariant{{
		Name: "terminal-stays", Rules: "inv-7, st-50",
		Says:  "the phase that is told of a pod never leaves Succeeded or Failed",
		begin: terminalStays,
	}, {
		Name: "restarts-only-grow", Rules: "inv-10", lists: true,
		Says:  "the restartCount that is told of a container never decreases",
		begin: restartsGrow,
	}, {
		Name: "terminal-means-stopped", Rules: "inv-5, inv-6, st-77", lists: true,
		Says:  "when a terminal phase is told, no container of the pod runs",
		begin: terminalMeansStopped,
	}, {
		Name: "terminal-not-ready", Rules: "inv-8",
		Says:  "a status with a terminal phase does not say Ready",
		begin: terminalNotReady,
	}, {
		Name: "deleted-when-gone", Rules: "inv-9, pw-42", lists: true,
		Says:  "an agent has the API delete a pod only when nothing of it runs or is mounted, and its last status was told",
		begin: deletedWhenGone,
	}, {
		Name: "results-are-true", Rules: "L-40, st-50", lists: true,
		Says:  "the exit code that is told of an instance is the one it had, and is not lost from then on while the instance is the newest",
		begin: resultsAreTrue,
	}, {
		Name: "instances-only-forward", Rules: "L-39", lists: true,
		Says:  "a status does not go back to an earlier instance of a container",
		begin: instancesForward,
	}}
}

// remember returns what keeps a T of each pod, for as long as somebody knows
// what was said of it: through one time of being wanted, and, where the source
// does not give statuses back (static pods), one agent.
func remember[T any]() func(t *truth, e *Entry) *T {
	type key struct {
		uid         types.UID
		life, agent int
	}
	kept := map[key]*T{}
	return func(t *truth, e *Entry) *T {
		p := t.pod(e.UID)
		k := key{uid: e.UID, life: life(e)}
		if p.static {
			k.agent = e.Agent
		}
		if kept[k] == nil {
			kept[k] = new(T)
		}
		return kept[k]
	}
}

func terminalStays(t *truth) func(*Entry) string {
	phase := remember[v1.PodPhase]()
	return func(e *Entry) string {
		if e.Kind != Said {
			return ""
		}
		last := phase(t, e)
		before := *last
		*last = e.Status.Phase
		if status.Terminal(before) && e.Status.Phase != before {
			return fmt.Sprintf("%s after %s", e.Status.Phase, before)
		}
		return ""
	}
}

func restartsGrow(t *truth) func(*Entry) string {
	counts := remember[map[string]int32]()
	return func(e *Entry) string {
		if e.Kind != Said {
			return ""
		}
		last := counts(t, e)
		before := *last
		*last = map[string]int32{}
		for c := range containerStatuses(e.Status) {
			(*last)[c.Name] = c.RestartCount
		}
		for name, n := range before {
			if now, ok := (*last)[name]; ok && now < n {
				return fmt.Sprintf("%s went from %d to %d", name, n, now)
			}
		}
		return ""
	}
}

func terminalMeansStopped(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		if e.Kind != Said || !status.Terminal(e.Status.Phase) || t.pod(e.UID).failed {
			return ""
		}
		if running := t.pod(e.UID).running(); len(running) > 0 && life(e) == t.pod(e.UID).lives {
			return fmt.Sprintf("%s was told while %s ran", e.Status.Phase, running[0].ID)
		}
		return ""
	}
}

func terminalNotReady(*truth) func(*Entry) string {
	return func(e *Entry) string {
		if e.Kind == Said && status.Terminal(e.Status.Phase) && status.IsReady(e.Status) {
			return string(e.Status.Phase) + " and Ready"
		}
		return ""
	}
}

func deletedWhenGone(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		p := t.pod(e.UID)
		if e.Kind != SaidDeleted || life(e) != p.lives {
			return ""
		}
		switch running := p.running(); {
		case len(running) > 0:
			return fmt.Sprintf("%s ran", running[0].ID)
		case len(p.ready()) > 0:
			return fmt.Sprintf("sandbox %s was ready", p.ready()[0])
		case len(p.mounted) > 0:
			return fmt.Sprintf("volumes %v were mounted", slices.Sorted(maps.Keys(p.mounted)))
		case !p.static && p.wanted != nil && p.wanted.DeletionTimestamp == nil:
			return "nobody asked for it"
		case !p.static && p.wanted != nil && !status.Terminal(p.wanted.Status.Phase):
			// What the store shows: the object at the time it was asked to go.
			if p.said == nil || !status.Terminal(p.said.Phase) {
				return "its last status was not told"
			}
		}
		return ""
	}
}

func resultsAreTrue(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		if e.Kind != Said {
			return ""
		}
		p := t.pod(e.UID)
		for c := range containerStatuses(e.Status) {
			for _, end := range []*v1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
				// Those two reasons say that the code is a guess: its end was not seen.
				if end == nil || end.ContainerID == "" || end.Reason == "ContainerStatusUnknown" || end.Reason == "RestartingAllContainers" {
					continue
				}
				was := p.ever[end.ContainerID]
				switch {
				case was == nil:
					return fmt.Sprintf("%s has exited, and there never was such an instance", end.ContainerID)
				case was.State != runtime.ContainerExited:
					return fmt.Sprintf("%s has exited, and it runs", end.ContainerID)
				case was.ExitCode != end.ExitCode:
					return fmt.Sprintf("%s exited with %d, and %d was told", end.ContainerID, was.ExitCode, end.ExitCode)
				}
			}
		}
		return ""
	}
}

func instancesForward(t *truth) func(*Entry) string {
	newest := remember[map[string]time.Time]()
	return func(e *Entry) string {
		if e.Kind != Said {
			return ""
		}
		last := newest(t, e)
		if *last == nil {
			*last = map[string]time.Time{}
		}
		for c := range containerStatuses(e.Status) {
			is := t.pod(e.UID).ever[c.ContainerID]
			if is == nil {
				continue
			}
			if is.CreatedAt.Before((*last)[c.Name]) {
				return fmt.Sprintf("%s shows %s again", c.Name, c.ContainerID)
			}
			(*last)[c.Name] = is.CreatedAt
		}
		return ""
	}
}

// containerStatuses ranges over init containers and regular ones.
func containerStatuses(s *v1.PodStatus) iter.Seq[*v1.ContainerStatus] {
	return func(yield func(*v1.ContainerStatus) bool) {
		for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}
