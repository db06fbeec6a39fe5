package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/runtime"
)

// eventLaws are about what an agent notices, and how soon it acts on it.
func eventLaws() []Law {
	return []Law{{
		Name: "events-once", Rules: "pleg-4 … pleg-8",
		Says:  "an agent is told once that an instance or a sandbox started, then once that it died, then once that it was removed",
		begin: eventsOnce,
	}, {
		Name: "exits-are-noticed", Rules: "inv-12",
		Says:  "while nothing goes wrong, an agent is told of an exit within 5 seconds",
		begin: exitsNoticed,
	}, {
		Name: "back-off-ends", Rules: "rt-92",
		Says:  "while nothing goes wrong, a container that ran for more than 10 minutes is started again within 5 seconds, whatever it did before",
		begin: backOffEnds,
	}, {
		Name: "rest-remembers", Rules: "L-40, st-16",
		Says:  "in the end, the last state that is told of a container which was restarted is the exit of the instance before it",
		begin: atRest(restRemembers),
	}}
}

func eventsOnce(*truth) func(*Entry) string {
	type key struct {
		agent int
		id    string
	}
	last := map[key]pleg.EventType{}
	order := []pleg.EventType{"", pleg.ContainerChanged, pleg.ContainerStarted, pleg.ContainerDied, pleg.ContainerRemoved}
	return func(e *Entry) string {
		if e.Kind != Noticed || e.Event.ContainerID == "" {
			return ""
		}
		k := key{e.Agent, e.Event.ContainerID}
		before := last[k]
		last[k] = e.Event.Type
		if slices.Index(order, e.Event.Type) <= slices.Index(order, before) {
			return fmt.Sprintf("%s after %s", e.Event, before)
		}
		return ""
	}
}

// A calm says since when nothing goes wrong: one agent runs, and no call that a
// fault has hit can still be on its way.
type calm struct {
	since time.Time
	agent int // zero: none runs
}

// take notes what disturbs the calm, and reports whether it did.
func (c *calm) take(t *truth, e *Entry) (disturbed bool) {
	switch {
	case e.Kind == AgentBegan:
		c.agent, c.since = e.Agent, latest(c.since, t.now.Add(5*time.Second))
	case e.Kind == AgentDied:
		c.agent = 0
	case e.Kind == StepTaken && e.Step.Do == Fault:
		c.since = latest(c.since, t.now.Add(e.Step.For+e.Step.Delay+hangs+time.Minute))
	default:
		return false
	}
	return true
}

func (c *calm) now(t *truth) bool { return c.agent != 0 && !t.now.Before(c.since) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func exitsNoticed(t *truth) func(*Entry) string {
	const soon = 5 * time.Second
	type exit struct {
		at time.Time
		id string
	}
	var c calm
	var open []exit // in order of time
	return func(e *Entry) string {
		if c.take(t, e) {
			open = nil
		}
		switch {
		case e.Kind == Exited && c.now(t):
			open = append(open, exit{t.now, e.Container.ID})
		case e.Kind == Noticed && (e.Event.Type == pleg.ContainerDied || e.Event.Type == pleg.ContainerRemoved):
			open = slices.DeleteFunc(open, func(x exit) bool { return x.id == e.Event.ContainerID })
		}
		if len(open) > 0 && t.now.Sub(open[0].at) > soon {
			id := open[0].id
			open = open[1:]
			return fmt.Sprintf("the exit of %s was not noticed", id)
		}
		return ""
	}
}

func backOffEnds(t *truth) func(*Entry) string {
	const (
		long = 10*time.Minute + time.Second
		soon = 5 * time.Second
	)
	var c calm
	return func(e *Entry) string {
		c.take(t, e)
		if e.Kind != Started || !c.now(t) {
			return ""
		}
		p := t.pod(e.UID)
		before := p.before(e.Container)
		if before == nil || before.State != runtime.ContainerExited || p.changed || p.lives > 1 || slow(p) ||
			before.FinishedAt.Sub(before.StartedAt) < long || before.FinishedAt.Before(c.since) {
			return ""
		}
		if rest := e.Container.StartedAt.Sub(before.FinishedAt); rest > soon {
			return fmt.Sprintf("%s ran for %v and was started again %v after its exit", before.ID, before.FinishedAt.Sub(before.StartedAt), rest)
		}
		return ""
	}
}

// slow reports whether a start in the pod takes time, for which others wait.
func slow(p *podTruth) bool {
	if p.spec == nil {
		return true
	}
	for _, c := range slices.Concat(p.spec.Spec.InitContainers, p.spec.Spec.Containers) {
		if does, err := ParseBehaviour(c.Image); err != nil || does.StartDelay > 0 {
			return true
		}
	}
	return false
}

func restRemembers(_ *truth, p *podTruth) string {
	if p.wanted == nil || p.said == nil {
		return ""
	}
	for c := range containerStatuses(p.said) {
		is := p.instance[c.ContainerID]
		if is == nil || c.State.Running == nil {
			continue
		}
		before := p.before(is)
		if before == nil || before.State != runtime.ContainerExited {
			continue
		}
		if told := c.LastTerminationState.Terminated; told == nil {
			return fmt.Sprintf("%s came after %s, of which nothing is told", is.ID, before.ID)
		} else if told.ContainerID != before.ID {
			return fmt.Sprintf("%s came after %s, and the exit of %s is told", is.ID, before.ID, told.ContainerID)
		}
	}
	return ""
}
