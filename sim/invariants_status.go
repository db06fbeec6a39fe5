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

// statusInvariants are the invariants of the calls of the sink.
func statusInvariants() []Invariant {
	return []Invariant{{
		Name: "terminal-phase-final", Rules: "inv-7, st-50",
		Description: "the reported phase of a pod never leaves Succeeded or Failed",
		newCheck:    terminalPhaseFinal,
	}, {
		Name: "reported-restart-count", Rules: "inv-10", requiresCurrentLists: true,
		Description: "the reported restartCount of a container never decreases",
		newCheck:    reportedRestartCount,
	}, {
		Name: "terminal-means-stopped", Rules: "inv-5, inv-6, st-77", requiresCurrentLists: true,
		Description: "when a terminal phase is reported, no container of the pod runs",
		newCheck:    terminalMeansStopped,
	}, {
		Name: "terminal-not-ready", Rules: "inv-8",
		Description: "a status with a terminal phase is not Ready",
		newCheck:    terminalNotReady,
	}, {
		Name: "deleted-after-cleanup", Rules: "inv-9, pw-42", requiresCurrentLists: true,
		Description: "an agent calls DeletePod only when no container runs, no sandbox is ready, no volume is mounted and the last status was reported",
		newCheck:    deletedAfterCleanup,
	}, {
		Name: "exit-codes-correct", Rules: "st-50", requiresCurrentLists: true,
		Description: "the reported exit code of an instance is its actual one, and no exit of a running instance is reported",
		newCheck:    exitCodesCorrect,
	}, {
		Name: "reported-instance-never-older", requiresCurrentLists: true,
		Description: "a status never reports an earlier instance of a container than the status before",
		newCheck:    reportedInstanceNewer,
	}}
}

// perIncarnation returns a function that stores a T for each incarnation of a pod. For a
// static pod it stores a T for each agent too, because the next agent does not get the
// status of a static pod from its source.
func perIncarnation[T any]() func(t *truth, e *Entry) *T {
	type key struct {
		uid                types.UID
		incarnation, agent int
	}
	kept := map[key]*T{}
	return func(t *truth, e *Entry) *T {
		p := t.pod(e.UID)
		k := key{uid: e.UID, incarnation: incarnation(e)}
		if p.static {
			k.agent = e.Agent
		}
		if kept[k] == nil {
			kept[k] = new(T)
		}
		return kept[k]
	}
}

func terminalPhaseFinal(t *truth) func(*Entry) string {
	phase := perIncarnation[v1.PodPhase]()
	return func(e *Entry) string {
		if e.Kind != StatusUpdated {
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

func reportedRestartCount(t *truth) func(*Entry) string {
	counts := perIncarnation[map[string]int32]()
	return func(e *Entry) string {
		if e.Kind != StatusUpdated {
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
		if e.Kind != StatusUpdated || !status.Terminal(e.Status.Phase) || t.pod(e.UID).markedFailed {
			return ""
		}
		if running := t.pod(e.UID).running(); len(running) > 0 && incarnation(e) == t.pod(e.UID).incarnations {
			return fmt.Sprintf("%s was reported while %s ran", e.Status.Phase, running[0].ID)
		}
		return ""
	}
}

func terminalNotReady(*truth) func(*Entry) string {
	return func(e *Entry) string {
		if e.Kind == StatusUpdated && status.Terminal(e.Status.Phase) && status.IsReady(e.Status) {
			return string(e.Status.Phase) + " and Ready"
		}
		return ""
	}
}

func deletedAfterCleanup(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		p := t.pod(e.UID)
		if e.Kind != DeletePodCalled || incarnation(e) != p.incarnations {
			return ""
		}
		switch running := p.running(); {
		case len(running) > 0:
			return fmt.Sprintf("%s ran", running[0].ID)
		case len(p.readySandboxes()) > 0:
			return fmt.Sprintf("sandbox %s was ready", p.readySandboxes()[0])
		case len(p.mounted) > 0:
			return fmt.Sprintf("volumes %v were mounted", slices.Sorted(maps.Keys(p.mounted)))
		case !p.static && p.desired != nil && p.desired.DeletionTimestamp == nil:
			return "its deletion was not requested"
		case !p.static && p.desired != nil && !status.Terminal(p.desired.Status.Phase):
			// The object in the store has the status at the time of the deletion request.
			if p.status == nil || !status.Terminal(p.status.Phase) {
				return "its last status was not reported"
			}
		}
		return ""
	}
}

func exitCodesCorrect(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		if e.Kind != StatusUpdated {
			return ""
		}
		p := t.pod(e.UID)
		for c := range containerStatuses(e.Status) {
			for _, end := range []*v1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
				// With these two reasons the exit was not observed and the code is made up.
				if end == nil || end.ContainerID == "" || end.Reason == "ContainerStatusUnknown" || end.Reason == "RestartingAllContainers" {
					continue
				}
				was := p.allInstances[end.ContainerID]
				switch {
				case was == nil:
					return fmt.Sprintf("an exit of %s is reported, and there never was such an instance", end.ContainerID)
				case was.State != runtime.ContainerExited:
					return fmt.Sprintf("an exit of %s is reported, and it runs", end.ContainerID)
				case was.ExitCode != end.ExitCode:
					return fmt.Sprintf("%s exited with %d, and %d is reported", end.ContainerID, was.ExitCode, end.ExitCode)
				}
			}
		}
		return ""
	}
}

func reportedInstanceNewer(t *truth) func(*Entry) string {
	newest := perIncarnation[map[string]time.Time]()
	return func(e *Entry) string {
		if e.Kind != StatusUpdated {
			return ""
		}
		last := newest(t, e)
		if *last == nil {
			*last = map[string]time.Time{}
		}
		for c := range containerStatuses(e.Status) {
			is := t.pod(e.UID).allInstances[c.ContainerID]
			if is == nil {
				continue
			}
			if is.CreatedAt.Before((*last)[c.Name]) {
				return fmt.Sprintf("%s is reported with the earlier instance %s", c.Name, c.ContainerID)
			}
			(*last)[c.Name] = is.CreatedAt
		}
		return ""
	}
}

// containerStatuses ranges over the statuses of init and regular containers.
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
