package oracle

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/sim"
)

// simInvariants are the invariants of package sim that a record from outside can be checked by. The others
// are about calls between the components of an agent, about subsystems that no scenario uses, or about the
// removal of dead containers, for which a kubelet has minutes.
var simInvariants = []string{
	"one-live-instance", "one-ready-sandbox", "restart-policy", "init-order", "back-off", "terminal-phase-final",
	"reported-restart-count", "terminal-means-stopped", "terminal-not-ready", "deleted-after-cleanup", "exit-codes-correct",
	"reported-instance-never-older", "restart-count-increases", "finally-deleted", "finally-running", "finally-reported",
	"finally-last-state", "terminal-never-restarts", "no-status-hot-loop", "finally-all-restarted", "back-off-resets",
	"unhealthy-restarted", "finally-ready", "startup-probe-first", "no-probe-after-exit", "sidecars-stop-last", "hook-before-running",
}

// checkedBySim returns these invariants.
func checkedBySim() (out []sim.Invariant) {
	for _, inv := range sim.Invariants() {
		if slices.Contains(simInvariants, inv.Name) {
			out = append(out, inv)
		}
	}
	return out
}

// A translator makes the entries of package sim from records. Of the calls within an agent it derives those
// that can be inferred: SyncPod was called for a pod that gets a sandbox, and KillPod is called for one whose
// deletion is requested.
type translator struct {
	start     time.Time
	agent     int
	pods      map[types.UID]*v1.Pod
	names     map[string]types.UID
	instances map[string]*runtime.ContainerStatus // by the ID in statuses
	deleting  map[string]bool                     // names of pods that the kubelet has requested the deletion of
	unhealthy map[string]bool                     // instances whose liveness or startup probe has failed
	steps     Scenario
}

func newTranslator(s Scenario) *translator {
	return &translator{
		start: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), agent: 1,
		pods: map[types.UID]*v1.Pod{}, names: map[string]types.UID{}, instances: map[string]*runtime.ContainerStatus{}, deleting: map[string]bool{}, unhealthy: map[string]bool{}, steps: s,
	}
}

// entries returns the entries of a record.
func (t *translator) entries(r Record) []sim.Entry {
	switch {
	case r.Step != nil:
		step, err := parseStep(*r.Step)
		if err != nil {
			return nil
		}
		e := sim.Entry{Kind: sim.StepTaken, Step: &step.Step}
		if uid, ok := t.names[step.Pod]; ok && step.Do != sim.Fault {
			e.Pod, e.UID = step.Pod, uid
		}
		return []sim.Entry{e}
	case r.Agent != nil:
		if r.Agent.What == "started" {
			t.agent = r.Agent.Number
			return []sim.Entry{{Kind: sim.AgentStarted, Agent: t.agent}}
		}
		return []sim.Entry{{Kind: sim.AgentKilled, Agent: r.Agent.Number}}
	case r.Call != nil:
		return t.call(r.Call)
	case r.Change != nil:
		return t.change(r.Change, t.start.Add(r.At))
	case r.Pod != nil:
		return t.version(r.Pod)
	case r.Request != nil && r.Request.Verb == "delete":
		t.deleting[r.Request.Pod] = true
	case r.Mark != nil:
		return t.mark(*r.Mark)
	}
	return nil
}

func (t *translator) call(c *Call) (out []sim.Entry) {
	pod := t.pods[c.Pod]
	if pod == nil {
		return nil
	}
	e := sim.Entry{Agent: t.agent, Pod: pod.Name, UID: c.Pod, Object: pod}
	switch {
	case c.Method == "RunPodSandbox":
		e.Kind = sim.SyncPodCalled
		return []sim.Entry{e}
	case c.Method == "ExecSync" && sim.IsHook(c.Command) && c.Err == "" && c.Exit == 0:
		e.Kind, e.Call = sim.HookSucceeded, containerID(c.ID)
		return []sim.Entry{e}
	case c.Method == "ExecSync" && len(c.Command) == 2 && c.Command[0] == probeCommand && c.Err == "":
		e.Kind = sim.Probed
		for _, kind := range []prober.Kind{prober.Startup, prober.Readiness, prober.Liveness} {
			if kind.String() == c.Command[1] {
				e.Probe = &sim.ProbeRun{Container: c.Container, ContainerID: containerID(c.ID), Kind: kind, Success: c.Exit == 0}
				if c.Exit != 0 && kind != prober.Readiness {
					t.unhealthy[e.Probe.ContainerID] = true
				}
				return []sim.Entry{e}
			}
		}
	}
	return nil
}

func (t *translator) change(c *Change, now time.Time) []sim.Entry {
	e := sim.Entry{Agent: t.agent, UID: c.Pod}
	pod := t.pods[c.Pod]
	if pod != nil {
		e.Pod = pod.Name
	}
	if c.Container == "" {
		e.Sandbox = &runtime.SandboxStatus{ID: c.ID, Attempt: c.Attempt, State: runtime.SandboxNotReady}
		switch c.To {
		case "ready":
			e.Kind, e.Sandbox.State = sim.SandboxReady, runtime.SandboxReady
		case "not ready":
			e.Kind = sim.SandboxStopped
		default:
			e.Kind = sim.SandboxRemoved
		}
		return []sim.Entry{e}
	}
	id := containerID(c.ID)
	was := t.instances[id]
	if was == nil {
		was = &runtime.ContainerStatus{ID: id, Name: c.Container, SandboxID: c.Sandbox, Image: c.Image, RestartCount: int32(c.Attempt), CreatedAt: now}
	}
	is := *was
	switch c.To {
	case "created":
		e.Kind, is.State = sim.Created, runtime.ContainerCreated
	case "running":
		e.Kind, is.State, is.StartedAt = sim.Started, runtime.ContainerRunning, now
	case "exited":
		e.Kind, is.State, is.FinishedAt, is.ExitCode, is.Reason = sim.Exited, runtime.ContainerExited, now, c.ExitCode, c.Reason
		e.Stopped = c.Stopped
		is.Replaced = c.Stopped && t.unhealthy[id] && (pod == nil || pod.DeletionTimestamp == nil)
		if is.StartedAt.IsZero() {
			is.StartedAt = now
		}
	default:
		e.Kind = sim.Removed
	}
	t.instances[id] = &is
	e.Container = &is
	return []sim.Entry{e}
}

// version returns the entries of a version of a pod.
func (t *translator) version(v *Version) (out []sim.Entry) {
	pod := v.Pod
	before := t.pods[pod.UID]
	sim.SetIncarnation(pod, 1)
	e := sim.Entry{Pod: pod.Name, UID: pod.UID, Object: pod, Agent: t.agent}
	add := func(kind sim.EntryKind) {
		e.Kind = kind
		out = append(out, e)
	}
	switch {
	case before == nil:
		add(sim.PodAdded)
	case before.DeletionTimestamp == nil && pod.DeletionTimestamp != nil:
		add(sim.DeletionRequested)
		e.Grace = pod.DeletionGracePeriodSeconds
		add(sim.KillPodCalled) // at once, or later
	case before.Generation != pod.Generation && pod.DeletionTimestamp == nil:
		if sameImages(before, pod) {
			add(sim.ResizeRequested)
		} else {
			add(sim.PodChanged)
		}
	}
	if marked := pod.Status.Reason == "Lost" && (before == nil || before.Status.Reason != "Lost"); marked {
		add(sim.MarkedFailed)
	}
	if before == nil && pod.Status.ContainerStatuses != nil || before != nil && !sameStatus(&before.Status, &pod.Status) {
		e := sim.Entry{Kind: sim.StatusUpdated, Agent: t.agent, Pod: pod.Name, UID: pod.UID, Object: pod, Status: &pod.Status}
		out = append(out, e)
	}
	t.pods[pod.UID], t.names[pod.Name] = pod, pod.UID
	if v.Deleted {
		// The watcher gets the last status after the kubelet has requested the deletion.
		if t.deleting[pod.Name] {
			add(sim.DeletePodCalled)
		}
		delete(t.deleting, pod.Name)
		add(sim.PodRemoved)
		delete(t.names, pod.Name)
	}
	return out
}

func (t *translator) mark(m string) (out []sim.Entry) {
	switch m {
	case markQuiet:
		return []sim.Entry{{Kind: sim.FaultsEnded}}
	case markSettled, markEnded:
		for uid, pod := range t.pods {
			out = append(out, sim.Entry{Kind: sim.PodSettled, Pod: pod.Name, UID: uid})
		}
		slices.SortFunc(out, func(a, b sim.Entry) int { return compareText(string(a.UID), string(b.UID)) })
	}
	return out
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func sameImages(a, b *v1.Pod) bool {
	images := func(pod *v1.Pod) (out []string) {
		for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for _, c := range list {
				out = append(out, c.Image)
			}
		}
		return out
	}
	return slices.Equal(images(a), images(b))
}

// sameStatus reports whether two statuses are equal.
func sameStatus(a, b *v1.PodStatus) bool { return fmt.Sprint(a) == fmt.Sprint(b) }
