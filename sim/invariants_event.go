package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/runtime"
)

// eventInvariants are the invariants of pleg's events, and of the reactions to them.
func eventInvariants() []Invariant {
	return []Invariant{{
		Name: "events-in-order", Rules: "pleg-4 … pleg-8", requiresCurrentLists: true,
		Description: "an agent gets at most one event each for the start, the exit and the removal of an instance or sandbox, in this order",
		newCheck:    eventsInOrder,
	}, {
		Name: "exit-events", Rules: "inv-12",
		Description: "while there are no faults, an agent gets the event of an exit within 5 seconds",
		newCheck:    exitEvents(5*time.Second, true),
	}, {
		Name: "exit-events-by-relist", Rules: "inv-12, pleg-33",
		Description: "while only runtime events are lost, an agent gets the event of an exit within 5 minutes, the longest relist period, and 5 seconds",
		newCheck:    exitEvents(5*time.Minute+5*time.Second, false),
	}, {
		Name:        "followers-consistent",
		Description: "finally, a slow follower and the agent have got the same last event of each instance and sandbox",
		newCheck:    followersConsistent,
	}, {
		Name: "back-off-resets", Rules: "rt-92",
		Description: "while there are no faults, a container that ran for more than 10 minutes is restarted within 5 seconds, regardless of earlier exits",
		newCheck:    backOffResets,
	}, {
		Name: "finally-last-state", Rules: "st-16",
		Description: "finally, the reported last state of a restarted container is the exit of its previous instance",
		newCheck:    onSettled(finalLastState),
	}}
}

func eventsInOrder(*truth) func(*Entry) string {
	type key struct {
		kind  EntryKind
		agent int
		id    string
	}
	last := map[key]pleg.EventType{}
	order := []pleg.EventType{"", pleg.ContainerChanged, pleg.ContainerStarted, pleg.ContainerDied, pleg.ContainerRemoved}
	return func(e *Entry) string {
		if e.Kind != EventReceived && e.Kind != EventFollowed || e.Event.ContainerID == "" {
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

// A faultFree determines the periods without faults: one agent runs, and no call that a
// fault affected is pending.
type faultFree struct {
	since time.Time
	agent int // zero: none runs

	includeEvents bool // lost and late events count as faults
}

// observe updates the period with an entry, and reports whether the entry interrupted
// or postponed it.
func (c *faultFree) observe(t *truth, e *Entry) (disturbed bool) {
	switch {
	case e.Kind == AgentStarted:
		c.agent, c.since = e.Agent, latest(c.since, t.now.Add(5*time.Second))
	case e.Kind == AgentKilled:
		c.agent = 0
	case e.Kind == StepTaken && e.Step.Do == Fault && (e.Step.Calls == eventsCall && !c.includeEvents || e.Step.Kind == Sick):
		return false // the agent must react to failed probes as usual
	case e.Kind == StepTaken && e.Step.Do == Fault:
		c.since = latest(c.since, t.now.Add(e.Step.For+e.Step.Delay+hangDuration+time.Minute))
	default:
		return false
	}
	return true
}

func (c *faultFree) holds(t *truth) bool { return c.agent != 0 && !t.now.Before(c.since) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// followersConsistent compares the last events that the running agent and its follower
// got.
func followersConsistent(t *truth) func(*Entry) string {
	type lastEvents struct{ agent, follower pleg.EventType }
	last := map[*podTruth]map[string]lastEvents{}
	return func(e *Entry) string {
		switch e.Kind {
		case AgentStarted:
			clear(last)
		case EventReceived, EventFollowed:
			p := t.pod(e.UID)
			if last[p] == nil {
				last[p] = map[string]lastEvents{}
			}
			was := last[p][e.Event.ContainerID]
			if e.Kind == EventReceived {
				was.agent = e.Event.Type
			} else {
				was.follower = e.Event.Type
			}
			last[p][e.Event.ContainerID] = was
		case PodSettled:
			p := t.pod(e.UID)
			if t.now.Sub(p.lastChange) < 2*time.Minute {
				return "" // the follower may be late
			}
			for _, id := range slices.Sorted(maps.Keys(last[p])) {
				// A follower gets no event of an instance that was created and removed
				// while it was busy.
				was := last[p][id]
				if id != "" && was.agent != was.follower && (was.agent != pleg.ContainerRemoved || was.follower != "") {
					return fmt.Sprintf("the last event of %s was %q for the agent and %q for the follower", id, was.agent, was.follower)
				}
			}
		}
		return ""
	}
}

func exitEvents(soon time.Duration, hints bool) func(*truth) func(*Entry) string {
	return func(t *truth) func(*Entry) string { return checkExitEvents(t, soon, hints) }
}

func checkExitEvents(t *truth, soon time.Duration, hints bool) func(*Entry) string {
	type exit struct {
		at time.Time
		id string
	}
	c := faultFree{includeEvents: hints}
	var open []exit              // in order of time
	started := map[string]bool{} // events of the agent about instances
	return func(e *Entry) string {
		if c.observe(t, e) {
			open = nil
		}
		switch {
		case e.Kind == AgentStarted: // it gets events about all containers
			clear(started)
		case e.Kind == Exited && c.holds(t):
			open = append(open, exit{t.now, e.Container.ID})
		case e.Kind == EventReceived && e.Event.Type == pleg.ContainerStarted:
			started[e.Event.ContainerID] = true
		case e.Kind == Removed && !started[e.Container.ID]: // it has not been observed, and will not be
			open = slices.DeleteFunc(open, func(x exit) bool { return x.id == e.Container.ID })
		case e.Kind == EventReceived && (e.Event.Type == pleg.ContainerDied || e.Event.Type == pleg.ContainerRemoved):
			open = slices.DeleteFunc(open, func(x exit) bool { return x.id == e.Event.ContainerID })
		}
		if len(open) > 0 && t.now.Sub(open[0].at) > soon {
			id := open[0].id
			open = open[1:]
			return fmt.Sprintf("no event of the exit of %s", id)
		}
		return ""
	}
}

func backOffResets(t *truth) func(*Entry) string {
	const (
		long = 10*time.Minute + time.Second
		soon = 5 * time.Second
	)
	c := faultFree{includeEvents: true}
	return func(e *Entry) string {
		c.observe(t, e)
		if e.Kind != Started || !c.holds(t) {
			return ""
		}
		p := t.pod(e.UID)
		before := p.previous(e.Container)
		if before == nil || before.State != runtime.ContainerExited || p.specChanged || p.incarnations > 1 || startsSlowly(p) ||
			before.FinishedAt.Sub(before.StartedAt) < long || before.FinishedAt.Before(c.since) {
			return ""
		}
		if rest := e.Container.StartedAt.Sub(before.FinishedAt); rest > soon {
			return fmt.Sprintf("%s ran for %v and was restarted %v after its exit", before.ID, before.FinishedAt.Sub(before.StartedAt), rest)
		}
		return ""
	}
}

// startsSlowly reports whether a container of the pod has a StartDelay or a postStart hook, which
// delays the others.
func startsSlowly(p *podTruth) bool {
	return p.spec == nil || delaysStart(p) || slices.ContainsFunc(p.spec.Spec.Containers, hasHook) || slices.ContainsFunc(p.spec.Spec.InitContainers, hasHook)
}

func hasHook(c v1.Container) bool { return c.Lifecycle != nil }

// delaysStart reports whether a container of the pod has a StartDelay.
func delaysStart(p *podTruth) bool {
	for _, c := range slices.Concat(p.spec.Spec.InitContainers, p.spec.Spec.Containers) {
		if does, err := ImageBehavior(c.Image); err != nil || does.StartDelay > 0 {
			return true
		}
	}
	return false
}

func finalLastState(_ *truth, p *podTruth) string {
	if p.desired == nil || p.status == nil {
		return ""
	}
	for c := range containerStatuses(p.status) {
		is := p.instances[c.ContainerID]
		if is == nil || c.State.Running == nil {
			continue
		}
		before := p.previous(is)
		if before == nil || before.State != runtime.ContainerExited {
			continue
		}
		if reported := c.LastTerminationState.Terminated; reported == nil {
			return fmt.Sprintf("%s followed %s, and no last state is reported", is.ID, before.ID)
		} else if reported.ContainerID != before.ID {
			return fmt.Sprintf("%s followed %s, and the exit of %s is reported", is.ID, before.ID, reported.ContainerID)
		}
	}
	return ""
}
