package sim

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// nodeInvariants are the invariants of the node as a whole and of terminated pods.
func nodeInvariants() []Invariant {
	return []Invariant{{
		Name: "terminal-never-restarts", Rules: "inv-7, pw-11, adm-13",
		Description: "no container of a pod is started after a terminal phase of the same incarnation was reported",
		newCheck:    terminalNeverRestarts,
	}, {
		Name: "pod-capacity", Rules: "adm-7", requiresCurrentLists: true,
		Description: "at most as many pods that an agent admitted run at the same time as the node has capacity for",
		newCheck:    capacityRespected,
	}, {
		Name: "runtime-outage-reported", Rules: "pleg-26, sl-60",
		Description: "an agent without a response from the runtime for 5 minutes is not healthy, and finally it is healthy",
		newCheck:    outageReported,
	}, {
		Name: "no-status-hot-loop", Rules: "st-13, lq-9",
		Description: "an agent makes at most 30 status calls per pod and second",
		newCheck:    noStatusHotLoop,
	}, {
		Name: "finally-all-restarted", Rules: "rt-138, rt-140",
		Description: "finally, no container of a pod has been running since before an exit of another one whose rule restarts all containers",
		newCheck:    onSettled(finallyAllRestarted),
	}}
}

func terminalNeverRestarts(t *truth) func(*Entry) string {
	type end struct{ agent, incarnation int }
	over := map[types.UID]end{}
	agent := 0
	return func(e *Entry) string {
		switch e.Kind {
		case AgentStarted:
			agent = e.Agent
		case StatusUpdated:
			if status.Terminal(e.Status.Phase) {
				over[e.UID] = end{e.Agent, incarnation(e)}
			}
		case Started:
			p := t.pod(e.UID)
			if o, ok := over[e.UID]; ok && o.incarnation == p.syncedIncarnation && (!p.static || o.agent == agent) {
				return e.Container.ID + " was started"
			}
		}
		return ""
	}
}

// capacityRespected counts the pods that were admitted with the present capacity: the
// agent got them after the last Room step, and none of their containers or sandboxes was
// running when the agent started.
func capacityRespected(t *truth) func(*Entry) string {
	capacity, admitted := 0, map[types.UID]bool{}
	early := map[types.UID]bool{} // pods that were admitted before, or without a check of the capacity
	return func(e *Entry) string {
		switch e.Kind {
		case AgentStarted:
			clear(admitted)
			clear(early)
			for uid, p := range t.pods {
				early[uid] = len(p.running()) > 0 || len(p.readySandboxes()) > 0
			}
		case StepTaken:
			if e.Step.Do == Room {
				capacity = e.Step.Count
				for uid := range t.pods {
					early[uid] = true
				}
				clear(admitted)
			}
		case SyncPodCalled:
			admitted[e.UID] = admitted[e.UID] || !early[e.UID]
		case Started:
			n := 0
			for uid := range admitted {
				if admitted[uid] && len(t.pod(uid).running()) > 0 {
					n++
				}
			}
			if capacity > 0 && admitted[e.UID] && n > capacity {
				return fmt.Sprintf("%d pods run, the capacity is %d", n, capacity)
			}
		}
		return ""
	}
}

func outageReported(t *truth) func(*Entry) string {
	var began, since, until time.Time // of the agent, and of the last outage
	over := false
	return func(e *Entry) string {
		switch {
		case e.Kind == AgentStarted:
			began = t.now
		case e.Kind == FaultsEnded:
			over = true
		case e.Kind == StepTaken && e.Step.outage():
			if !t.now.Before(until) {
				since = t.now
			}
			until = latest(until, t.now.Add(e.Step.For))
		case e.Kind == HealthChecked && e.Err == "":
			if outage := t.now.Sub(latest(began, since)); t.now.Before(until) && outage > outageDetection {
				return fmt.Sprintf("the runtime has been unavailable for %v, and the agent is healthy", outage)
			}
		case e.Kind == HealthChecked && over && t.now.Sub(began) > 5*time.Minute:
			return e.Err
		}
		return ""
	}
}

func noStatusHotLoop(*truth) func(*Entry) string {
	last := map[types.UID][]time.Duration{}
	return func(e *Entry) string {
		if e.Kind != StatusUpdated && e.Kind != DeletePodCalled && (e.Kind != Called || e.Call != "UpdatePodStatus" && e.Call != "DeletePod") {
			return ""
		}
		times := append(last[e.UID], e.At)
		for len(times) > 0 && e.At-times[0] > time.Second {
			times = times[1:]
		}
		last[e.UID] = times
		if len(times) > 30 {
			return fmt.Sprintf("%d in a second", len(times))
		}
		return ""
	}
}

func finallyAllRestarted(t *truth, p *podTruth) string {
	if p.desired == nil || p.desired.DeletionTimestamp != nil || p.containersRemoved || p.specChanged || p.status == nil || status.Terminal(p.status.Phase) {
		return ""
	}
	for _, exit := range p.allInstances {
		spec, init := p.container(exit.Name)
		if spec == nil || init || exit.State != runtime.ContainerExited || !podspec.RestartsAll(spec, exit.ExitCode) || t.now.Sub(exit.FinishedAt) < backOffBound {
			continue
		}
		for _, c := range p.running() {
			if c.SandboxID == exit.SandboxID && c.StartedAt.Before(exit.FinishedAt) {
				return fmt.Sprintf("%s has been running since before %s exited with %d", c.ID, exit.ID, exit.ExitCode)
			}
		}
	}
	return ""
}
