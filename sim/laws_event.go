package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/runtime"
)

// eventLaws are about what an agent notices, and how soon it acts on it.
func eventLaws() []Invariant {
	return []Invariant{{
		Name: "events-once", Rules: "pleg-4 … pleg-8", lists: true,
		Says:  "an agent is told once that an instance or a sandbox started, then once that it died, then once that it was removed",
		begin: eventsOnce,
	}, {
		Name: "exits-are-noticed", Rules: "inv-12",
		Says:  "while nothing goes wrong, an agent is told of an exit within 5 seconds",
		begin: exitsNoticed(5*time.Second, true),
	}, {
		Name: "exits-are-noticed-without-hints", Rules: "inv-12, pleg-33",
		Says:  "while nothing but hints goes wrong, an agent is told of an exit within the longest period of lists, 5 minutes, and 5 seconds",
		begin: exitsNoticed(5*time.Minute+5*time.Second, false),
	}, {
		Name: "followers-hear-the-same", Rules: "L-13",
		Says:  "in the end, a slow follower has been told the same last thing of each instance and sandbox as the agent",
		begin: followersHear,
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
		who   EntryKind
		agent int
		id    string
	}
	last := map[key]pleg.EventType{}
	order := []pleg.EventType{"", pleg.ContainerChanged, pleg.ContainerStarted, pleg.ContainerDied, pleg.ContainerRemoved}
	return func(e *Entry) string {
		if e.Kind != Noticed && e.Kind != Followed || e.Event.ContainerID == "" {
			return ""
		}
		k := key{e.Kind, e.Agent, e.Event.ContainerID}
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

	hints bool // what goes wrong with hints counts
}

// take notes what disturbs the calm, and reports whether it did.
func (c *calm) take(t *truth, e *Entry) (disturbed bool) {
	switch {
	case e.Kind == AgentBegan:
		c.agent, c.since = e.Agent, latest(c.since, t.now.Add(5*time.Second))
	case e.Kind == AgentDied:
		c.agent = 0
	case e.Kind == StepTaken && e.Step.Do == Fault && (e.Step.Calls == hintsCall && !c.hints || e.Step.Kind == Sick):
		return false // a probe that fails is one that works
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

// followersHear compares what the two were told last by the agent that lives.
func followersHear(t *truth) func(*Entry) string {
	type told struct{ agent, follower pleg.EventType }
	last := map[*podTruth]map[string]told{}
	return func(e *Entry) string {
		switch e.Kind {
		case AgentBegan:
			clear(last)
		case Noticed, Followed:
			p := t.pod(e.UID)
			if last[p] == nil {
				last[p] = map[string]told{}
			}
			was := last[p][e.Event.ContainerID]
			if e.Kind == Noticed {
				was.agent = e.Event.Type
			} else {
				was.follower = e.Event.Type
			}
			last[p][e.Event.ContainerID] = was
		case Rested:
			p := t.pod(e.UID)
			if t.now.Sub(p.touched) < 2*time.Minute {
				return "" // it may be late
			}
			for _, id := range slices.Sorted(maps.Keys(last[p])) {
				// What came and went while it was busy, it is not told.
				was := last[p][id]
				if id != "" && was.agent != was.follower && (was.agent != pleg.ContainerRemoved || was.follower != "") {
					return fmt.Sprintf("of %s the agent was told %q, and the follower %q", id, was.agent, was.follower)
				}
			}
		}
		return ""
	}
}

func exitsNoticed(soon time.Duration, hints bool) func(*truth) func(*Entry) string {
	return func(t *truth) func(*Entry) string { return exitNoticed(t, soon, hints) }
}

func exitNoticed(t *truth, soon time.Duration, hints bool) func(*Entry) string {
	type exit struct {
		at time.Time
		id string
	}
	c := calm{hints: hints}
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
	c := calm{hints: true}
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
