package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// probeLaws are about probes, and about the reactions to their results.
func probeLaws() []Invariant {
	return []Invariant{{
		Name: "sick-restarted", Rules: "prober-66, rt-48",
		Says:  "while nothing goes wrong, a container whose liveness or startup probe has failed exits within two grace periods and 30 seconds",
		begin: sickRestarted,
	}, {
		Name: "well-not-killed", Rules: "rt-48, prober-21", lists: true,
		Says:  "a regular container of a pod that is not killed or changed gets TERM only if its liveness or startup probe has failed",
		begin: wellNotKilled,
	}, {
		Name: "readiness-is-reported", Rules: "prober-64, prober-67",
		Says:  "while nothing goes wrong, the status of a container has the result of its readiness probe within 10 seconds",
		begin: readinessReported,
	}, {
		Name: "rest-ready", Rules: "prober-67, prober-68",
		Says:  "in the end, the probes of a container that runs have been run, and it is reported as started and ready if they succeed, and only then",
		begin: atRest(restReady),
	}, {
		Name: "no-probe-at-the-end", Rules: "prober-12, prober-74, prober-75", lists: true,
		Says:  "an agent runs no liveness or startup probe of a pod after it has begun to kill it, and none at all after a terminal phase was reported",
		begin: noProbeAtTheEnd,
	}, {
		Name: "no-probe-of-the-dead", Rules: "prober-16, prober-18",
		Says:  "while nothing goes wrong, no probe is run of an instance that exited more than 5 seconds ago",
		begin: noProbeOfTheDead,
	}, {
		Name: "startup-first", Rules: "prober-20",
		Says:  "until a pod terminates, readiness and liveness of an instance are probed after its startup probe has succeeded",
		begin: startupFirst,
	}}
}

// leftAlone reports whether no agent has reason to stop anything of the pod, other
// than the results of probes.
func (p *podTruth) leftAlone() bool {
	return p.wanted != nil && p.wanted.DeletionTimestamp == nil && p.lives == 1 && p.killing == nil && p.evicted == 0 && !p.changed && !p.removed &&
		p.wanted.Spec.ActiveDeadlineSeconds == nil && !podspec.MayRestartAll(p.spec)
}

func sickRestarted(t *truth) func(*Entry) string {
	type sick struct {
		p     *podTruth
		until time.Time
	}
	c := calm{hints: true}
	due := map[string]sick{}
	return func(e *Entry) string {
		if c.take(t, e) {
			clear(due)
		}
		switch e.Kind {
		case Probed:
			p := t.pod(e.UID)
			if id := e.Probe.ContainerID; c.now(t) && p.condemned[id] == c.agent && p.leftAlone() && due[id].p == nil &&
				p.instance[id] != nil && p.instance[id].State == runtime.ContainerRunning {
				due[id] = sick{p, t.now.Add(2*time.Duration(*p.spec.Spec.TerminationGracePeriodSeconds)*time.Second + 30*time.Second)}
			}
		case Exited, Removed:
			delete(due, e.Container.ID)
		}
		for _, id := range slices.Sorted(maps.Keys(due)) {
			switch s := due[id]; {
			case !s.p.leftAlone():
				delete(due, id)
			case t.now.After(s.until):
				delete(due, id)
				return fmt.Sprintf("%s of pod %s runs, though a probe that it depends on has failed", id, s.p.uid)
			}
		}
		return ""
	}
}

// wellNotKilled goes by the exit code, as sidecars-last does.
func wellNotKilled(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		if e.Kind != Exited || e.Container.ExitCode != 143 {
			return ""
		}
		p := t.pod(e.UID)
		spec, init := p.container(e.Container.Name)
		sandbox := p.sandbox[e.Container.SandboxID]
		if spec == nil || init || !p.leftAlone() || p.condemned[e.Container.ID] > 0 || sandbox == nil || sandbox.State != runtime.SandboxReady {
			return ""
		}
		return e.Container.ID + " got TERM"
	}
}

// isReady reports whether the instance of a container should be reported as ready.
func (p *podTruth) isReady(spec *v1.Container, id string) bool {
	return p.passed(spec, id, prober.Startup) && p.passed(spec, id, prober.Readiness)
}

// reported returns the last reported status of the instance of a container; nil: none.
func (p *podTruth) reported(name, id string) *v1.ContainerStatus {
	if p.said == nil {
		return nil
	}
	for c := range containerStatuses(p.said) {
		if c.Name == name && c.ContainerID == id {
			return c
		}
	}
	return nil
}

func readinessReported(t *truth) func(*Entry) string {
	type news struct {
		p    *podTruth
		spec *v1.Container
		at   time.Time
	}
	c := calm{hints: true}
	due := map[string]news{} // by the ID of the instance
	return func(e *Entry) string {
		if c.take(t, e) {
			clear(due)
		}
		if e.Kind == Probed && e.Probe.Kind == prober.Readiness && c.now(t) {
			p, id := t.pod(e.UID), e.Probe.ContainerID
			s := p.probe[probeKey{id, prober.Readiness}]
			if spec, _ := p.container(e.Probe.Container); spec != nil && s.known && s.since.Equal(t.now) && s.agent == c.agent && p.leftAlone() {
				due[id] = news{p, spec, t.now}
			}
		}
		for _, id := range slices.Sorted(maps.Keys(due)) {
			n := due[id]
			reported, is := n.p.reported(n.spec.Name, id), n.p.instance[id]
			switch {
			case is == nil || is.State != runtime.ContainerRunning || !n.p.leftAlone() || t.now.Sub(n.p.touched) < 3*time.Second,
				n.p.said != nil && status.Terminal(n.p.said.Phase),
				reported != nil && reported.Ready == n.p.isReady(n.spec, id):
				delete(due, id)
			case t.now.Sub(n.at) > soon:
				delete(due, id)
				return fmt.Sprintf("%s of pod %s is reported as ready=%t", id, n.p.uid, reported != nil && reported.Ready)
			}
		}
		return ""
	}
}

func restReady(t *truth, p *podTruth) string {
	if p.wanted == nil || p.said == nil || status.Terminal(p.said.Phase) || p.wanted.DeletionTimestamp != nil || t.now.Sub(p.touched) < longestStop {
		return ""
	}
	for c := range containerStatuses(p.said) {
		spec, init := p.container(c.Name)
		is := p.newest(c.Name)
		if spec == nil || init && !podspec.IsSidecar(spec) || is == nil || is.State != runtime.ContainerRunning || is.ID != c.ContainerID {
			continue
		}
		if s := p.probe[probeKey{is.ID, prober.Readiness}]; s != nil && t.now.Sub(s.since) < soon {
			continue
		}
		for _, kind := range []prober.ProbeKind{prober.Startup, prober.Readiness, prober.Liveness} {
			due := kind.Probe(spec) != nil && (kind == prober.Startup || p.passed(spec, is.ID, prober.Startup))
			if due && p.probe[probeKey{is.ID, kind}] == nil && t.now.Sub(is.StartedAt) > longestStop {
				return fmt.Sprintf("%s has not been probed: %s", is.ID, kind)
			}
		}
		if started := p.passed(spec, is.ID, prober.Startup); c.Started == nil || *c.Started != started {
			return fmt.Sprintf("%s is reported as started=%t", is.ID, !started)
		}
		if ready := p.isReady(spec, is.ID); c.Ready != ready {
			return fmt.Sprintf("%s is reported as ready=%t", is.ID, c.Ready)
		}
	}
	return ""
}

func noProbeAtTheEnd(t *truth) func(*Entry) string {
	type end struct{ agent, life int }
	over := map[*podTruth]end{}
	return func(e *Entry) string {
		switch e.Kind {
		case Said:
			if status.Terminal(e.Status.Phase) {
				over[t.pod(e.UID)] = end{e.Agent, life(e)}
			}
		case Probed:
			p := t.pod(e.UID)
			if over[p] == (end{e.Agent, life(e)}) {
				return fmt.Sprintf("%s after a terminal phase was reported", e.Probe)
			}
			if k := p.killing; e.Probe.Kind != prober.Readiness && k != nil && k.agent == e.Agent && k.life == life(e) {
				return fmt.Sprintf("%s after KillPod", e.Probe)
			}
		}
		return ""
	}
}

func noProbeOfTheDead(t *truth) func(*Entry) string {
	c := calm{hints: true}
	return func(e *Entry) string {
		c.take(t, e)
		if e.Kind != Probed || !c.now(t) {
			return ""
		}
		is := t.pod(e.UID).ever[e.Probe.ContainerID]
		if is == nil {
			return e.Probe.ContainerID + " does not exist"
		}
		if is.State == runtime.ContainerExited && t.now.Sub(is.FinishedAt) > 5*time.Second {
			return fmt.Sprintf("%s exited %v ago", is.ID, t.now.Sub(is.FinishedAt))
		}
		return ""
	}
}

func startupFirst(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		if e.Kind != Probed || e.Probe.Kind == prober.Startup {
			return ""
		}
		p := t.pod(e.UID)
		if !p.leftAlone() || p.over() {
			return "" // its startup probe is run no more, also if it has not succeeded
		}
		if spec, _ := p.container(e.Probe.Container); spec != nil && !p.passed(spec, e.Probe.ContainerID, prober.Startup) {
			return e.Probe.String()
		}
		return ""
	}
}
