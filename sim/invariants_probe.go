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

// probeInvariants are the invariants of probes and of the reactions to their results.
func probeInvariants() []Invariant {
	return []Invariant{{
		Name: "unhealthy-restarted", Rules: "prober-66, rt-48",
		Description: "while there are no faults, a container whose liveness or startup probe has failed exits within two grace periods and 30 seconds, not counting postStart hooks of its pod",
		newCheck:    unhealthyRestarted,
	}, {
		Name: "healthy-not-killed", Rules: "rt-48, prober-21", requiresCurrentLists: true,
		Description: "a regular container of a pod that is neither killed nor changed gets TERM only if its liveness or startup probe has failed",
		newCheck:    healthyNotKilled,
	}, {
		Name: "readiness-reported", Rules: "prober-64, prober-67",
		Description: "while there are no faults, the result of a readiness probe is reported in the container status within 10 seconds",
		newCheck:    readinessReported,
	}, {
		Name: "finally-ready", Rules: "prober-67, prober-68",
		Description: "finally, the probes of a running container have been run, and it is reported as started and ready if and only if they succeed",
		newCheck:    onSettled(finallyReady),
	}, {
		Name: "no-probe-after-kill", Rules: "prober-12, prober-74, prober-75", requiresCurrentLists: true,
		Description: "an agent runs no liveness or startup probe of a pod after it has called KillPod, and no probe after a terminal phase was reported",
		newCheck:    noProbeAfterKill,
	}, {
		Name: "no-probe-after-exit", Rules: "prober-16, prober-18",
		Description: "while there are no faults, no probe runs for an instance that exited more than 5 seconds ago",
		newCheck:    noProbeAfterExit,
	}, {
		Name: "startup-probe-first", Rules: "prober-20",
		Description: "unless the pod is terminating, readiness and liveness probes of an instance run only after its startup probe has succeeded",
		newCheck:    startupProbeFirst,
	}}
}

// undisturbed reports whether no agent has a reason to stop a container of the pod, other
// than the results of probes.
func (p *podTruth) undisturbed() bool {
	return p.desired != nil && p.desired.DeletionTimestamp == nil && p.incarnations == 1 && p.lastKill == nil && p.evictedBy == 0 && !p.specChanged && !p.containersRemoved &&
		p.desired.Spec.ActiveDeadlineSeconds == nil && !podspec.MayRestartAll(p.spec)
}

func unhealthyRestarted(t *truth) func(*Entry) string {
	type sick struct {
		p     *podTruth
		until time.Time
	}
	c := faultFree{includeEvents: true}
	due := map[string]sick{}
	return func(e *Entry) string {
		if c.observe(t, e) {
			clear(due)
		}
		switch e.Kind {
		case Probed:
			p := t.pod(e.UID)
			if id := e.Probe.ContainerID; c.holds(t) && p.unhealthy[id] == c.agent && p.undisturbed() && due[id].p == nil &&
				p.instances[id] != nil && p.instances[id].State == runtime.ContainerRunning {
				due[id] = sick{p, t.now.Add(p.restartBound())}
			}
		case Exited, Removed:
			delete(due, e.Container.ID)
		}
		for _, id := range slices.Sorted(maps.Keys(due)) {
			switch s := due[id]; {
			case !s.p.undisturbed():
				delete(due, id)
			case t.runsHooks && s.p.isStarting(): // the containers of a pod are managed in sequence
				due[id] = sick{s.p, t.now.Add(s.p.restartBound())}
			case t.now.After(s.until):
				delete(due, id)
				return fmt.Sprintf("%s of pod %s runs, though its liveness or startup probe has failed", id, s.p.uid)
			}
		}
		return ""
	}
}

// restartBound is the time in which a container is restarted.
func (p *podTruth) restartBound() time.Duration {
	return 2*time.Duration(*p.spec.Spec.TerminationGracePeriodSeconds)*time.Second + 30*time.Second
}

func healthyNotKilled(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		if !t.stopped(e) {
			return ""
		}
		p := t.pod(e.UID)
		spec, init := p.container(e.Container.Name)
		sandbox := p.sandboxes[e.Container.SandboxID]
		if spec == nil || init || p.hookPending(spec, e.Container.ID) || !p.undisturbed() || p.unhealthy[e.Container.ID] > 0 || sandbox == nil || sandbox.State != runtime.SandboxReady {
			return ""
		}
		return e.Container.ID + " got TERM"
	}
}

// shouldBeReady reports whether the instance of a container should be reported as ready.
func (p *podTruth) shouldBeReady(spec *v1.Container, id string) bool {
	return p.probeSucceeds(spec, id, prober.Startup) && p.probeSucceeds(spec, id, prober.Readiness)
}

// containerStatus returns the last reported status of the instance of a container; nil:
// there is none.
func (p *podTruth) containerStatus(name, id string) *v1.ContainerStatus {
	if p.status == nil {
		return nil
	}
	for c := range containerStatuses(p.status) {
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
	c := faultFree{includeEvents: true}
	due := map[string]news{} // by the ID of the instance
	return func(e *Entry) string {
		if c.observe(t, e) {
			clear(due)
		}
		if e.Kind == Probed && e.Probe.Kind == prober.Readiness && c.holds(t) {
			p, id := t.pod(e.UID), e.Probe.ContainerID
			s := p.probes[probeKey{id, prober.Readiness}]
			if spec, _ := p.container(e.Probe.Container); spec != nil && s.hasResult && s.since.Equal(t.now) && s.agent == c.agent && p.undisturbed() {
				due[id] = news{p, spec, t.now}
			}
		}
		for _, id := range slices.Sorted(maps.Keys(due)) {
			n := due[id]
			reported, is := n.p.containerStatus(n.spec.Name, id), n.p.instances[id]
			switch {
			case is == nil || is.State != runtime.ContainerRunning || !n.p.undisturbed() || t.now.Sub(n.p.lastChange) < 3*time.Second,
				n.p.status != nil && status.Terminal(n.p.status.Phase),
				reported != nil && reported.Ready == n.p.shouldBeReady(n.spec, id):
				delete(due, id)
			case reported == nil && n.p.isStarting(): // it is reported when SyncPod returns, after the postStart hooks
				n.at = t.now
				due[id] = n
			case t.now.Sub(n.at) > reactionBound:
				delete(due, id)
				return fmt.Sprintf("%s of pod %s is reported as ready=%t", id, n.p.uid, reported != nil && reported.Ready)
			}
		}
		return ""
	}
}

func finallyReady(t *truth, p *podTruth) string {
	if p.desired == nil || p.status == nil || status.Terminal(p.status.Phase) || p.desired.DeletionTimestamp != nil || t.now.Sub(p.lastChange) < stopBound {
		return ""
	}
	for c := range containerStatuses(p.status) {
		spec, init := p.container(c.Name)
		is := p.newest(c.Name)
		if spec == nil || init && !podspec.IsSidecar(spec) || is == nil || is.State != runtime.ContainerRunning || is.ID != c.ContainerID {
			continue
		}
		if s := p.probes[probeKey{is.ID, prober.Readiness}]; s != nil && t.now.Sub(s.since) < reactionBound {
			continue
		}
		for _, kind := range []prober.Kind{prober.Startup, prober.Readiness, prober.Liveness} {
			due := kind.Probe(spec) != nil && (kind == prober.Startup || p.probeSucceeds(spec, is.ID, prober.Startup))
			if due && p.probes[probeKey{is.ID, kind}] == nil && t.now.Sub(is.StartedAt) > stopBound {
				return fmt.Sprintf("%s has not been probed: %s", is.ID, kind)
			}
		}
		if started := p.probeSucceeds(spec, is.ID, prober.Startup); c.Started == nil || *c.Started != started {
			return fmt.Sprintf("%s is reported as started=%t", is.ID, !started)
		}
		if ready := p.shouldBeReady(spec, is.ID); c.Ready != ready {
			return fmt.Sprintf("%s is reported as ready=%t", is.ID, c.Ready)
		}
	}
	return ""
}

func noProbeAfterKill(t *truth) func(*Entry) string {
	type end struct{ agent, incarnation int }
	over := map[*podTruth]end{}
	return func(e *Entry) string {
		switch e.Kind {
		case StatusUpdated:
			if status.Terminal(e.Status.Phase) {
				over[t.pod(e.UID)] = end{e.Agent, incarnation(e)}
			}
		case Probed:
			p := t.pod(e.UID)
			if over[p] == (end{e.Agent, incarnation(e)}) {
				return fmt.Sprintf("%s after a terminal phase was reported", e.Probe)
			}
			if k := p.lastKill; e.Probe.Kind != prober.Readiness && k != nil && k.agent == e.Agent && k.incarnation == incarnation(e) {
				return fmt.Sprintf("%s after KillPod", e.Probe)
			}
		}
		return ""
	}
}

func noProbeAfterExit(t *truth) func(*Entry) string {
	c := faultFree{includeEvents: true}
	return func(e *Entry) string {
		c.observe(t, e)
		if e.Kind != Probed || !c.holds(t) {
			return ""
		}
		is := t.pod(e.UID).allInstances[e.Probe.ContainerID]
		if is == nil {
			return e.Probe.ContainerID + " does not exist"
		}
		if is.State == runtime.ContainerExited && t.now.Sub(is.FinishedAt) > 5*time.Second {
			return fmt.Sprintf("%s exited %v ago", is.ID, t.now.Sub(is.FinishedAt))
		}
		return ""
	}
}

func startupProbeFirst(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		if e.Kind != Probed || e.Probe.Kind == prober.Startup {
			return ""
		}
		p := t.pod(e.UID)
		if !p.undisturbed() || p.terminated() {
			return "" // its startup probe no longer runs, even if it has not succeeded
		}
		if spec, _ := p.container(e.Probe.Container); spec != nil && !p.probeSucceeds(spec, e.Probe.ContainerID, prober.Startup) {
			return e.Probe.String()
		}
		return ""
	}
}
