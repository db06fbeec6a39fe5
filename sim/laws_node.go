package sim

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// nodeLaws are about the node as a whole, and about what is over for good.
func nodeLaws() []Invariant {
	return []Invariant{{
		Name: "over-is-over", Rules: "inv-7, pw-11, adm-13",
		Says:  "nothing of a pod starts after a terminal phase was told of it, in that life",
		begin: overIsOver,
	}, {
		Name: "room", Rules: "adm-7", lists: true,
		Says:  "of the pods that an agent lets in, no more run at a time than the node has room for",
		begin: roomKept,
	}, {
		Name: "health-is-true", Rules: "pleg-26, L-3, sl-60",
		Says:  "an agent that has had no answer from the runtime for 5 minutes says that it is not healthy, and in the end it is",
		begin: healthIsTrue,
	}, {
		Name: "no-hot-telling", Rules: "st-13, lq-9",
		Says:  "an agent does not tell the sink of one pod more than 30 times in a second",
		begin: noHotTelling,
	}, {
		Name: "restart-all", Rules: "rt-138, rt-140",
		Says:  "in the end, no container of a pod runs since before another exited so that all of them had to start over",
		begin: atRest(allStartedOver),
	}}
}

func overIsOver(t *truth) func(*Entry) string {
	type end struct{ agent, life int }
	over := map[types.UID]end{}
	agent := 0
	return func(e *Entry) string {
		switch e.Kind {
		case AgentBegan:
			agent = e.Agent
		case Said:
			if status.Terminal(e.Status.Phase) {
				over[e.UID] = end{e.Agent, life(e)}
			}
		case Started:
			p := t.pod(e.UID)
			if o, ok := over[e.UID]; ok && o.life == p.synced && (!p.static || o.agent == agent) {
				return e.Container.ID + " was started"
			}
		}
		return ""
	}
}

// roomKept counts the pods that had to ask for room: those which the agent heard
// of when the room was what it is, and of which nothing ran when it began.
func roomKept(t *truth) func(*Entry) string {
	room, asked := 0, map[types.UID]bool{}
	early := map[types.UID]bool{} // those that may have asked before, or had no need to
	return func(e *Entry) string {
		switch e.Kind {
		case AgentBegan:
			clear(asked)
			clear(early)
			for uid, p := range t.pods {
				early[uid] = len(p.running()) > 0 || len(p.ready()) > 0
			}
		case StepTaken:
			if e.Step.Do == Room {
				room = e.Step.Count
				for uid := range t.pods {
					early[uid] = true
				}
				clear(asked)
			}
		case SyncBegan:
			asked[e.UID] = asked[e.UID] || !early[e.UID]
		case Started:
			n := 0
			for uid := range asked {
				if asked[uid] && len(t.pod(uid).running()) > 0 {
					n++
				}
			}
			if room > 0 && asked[e.UID] && n > room {
				return fmt.Sprintf("%d run where there is room for %d", n, room)
			}
		}
		return ""
	}
}

func healthIsTrue(t *truth) func(*Entry) string {
	var began, since, until time.Time // of the agent, and of the last outage
	over := false
	return func(e *Entry) string {
		switch {
		case e.Kind == AgentBegan:
			began = t.now
		case e.Kind == FaultsOver:
			over = true
		case e.Kind == StepTaken && e.Step.outage():
			if !t.now.Before(until) {
				since = t.now
			}
			until = latest(until, t.now.Add(e.Step.For))
		case e.Kind == Asked && e.Err == "":
			if away := t.now.Sub(latest(began, since)); t.now.Before(until) && away > outageKnown {
				return fmt.Sprintf("the runtime has been away for %v, and the agent says nothing", away)
			}
		case e.Kind == Asked && over && t.now.Sub(began) > 5*time.Minute:
			return e.Err
		}
		return ""
	}
}

func noHotTelling(*truth) func(*Entry) string {
	last := map[types.UID][]time.Duration{}
	return func(e *Entry) string {
		if e.Kind != Said && e.Kind != SaidDeleted && (e.Kind != Called || e.Call != "UpdatePodStatus" && e.Call != "DeletePod") {
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

func allStartedOver(t *truth, p *podTruth) string {
	if p.wanted == nil || p.wanted.DeletionTimestamp != nil || p.removed || p.changed || p.said == nil || status.Terminal(p.said.Phase) {
		return ""
	}
	for _, exit := range p.ever {
		spec, init := p.container(exit.Name)
		if spec == nil || init || exit.State != runtime.ContainerExited || !podspec.RestartsAll(spec, exit.ExitCode) || t.now.Sub(exit.FinishedAt) < longestRest {
			continue
		}
		for _, c := range p.running() {
			if c.SandboxID == exit.SandboxID && c.StartedAt.Before(exit.FinishedAt) {
				return fmt.Sprintf("%s runs since before %s exited with %d", c.ID, exit.ID, exit.ExitCode)
			}
		}
	}
	return ""
}
