package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// hookInvariants are the invariants of postStart hooks. They are not checked with a Machine that runs none.
func hookInvariants() []Invariant {
	return []Invariant{{
		Name: "hook-before-running", Rules: "rt-104, lq-14",
		Description: "a container is reported as running only after its postStart hook has succeeded",
		newCheck:    hookBeforeRunning,
	}, {
		Name: "running-after-hook", Rules: "rt-104",
		Description: "while there are no faults, a container is reported as running within 10 seconds of the last success of a postStart hook of its pod",
		newCheck:    runningAfterHook,
	}}
}

func hookBeforeRunning(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		if e.Kind != StatusUpdated || !t.runsHooks {
			return ""
		}
		p := t.pod(e.UID)
		for c := range containerStatuses(e.Status) {
			if spec, _ := p.container(c.Name); c.State.Running != nil && p.hookPending(spec, c.ContainerID) {
				return c.Name + " is reported as running, and its postStart hook has not succeeded"
			}
		}
		return ""
	}
}

// hookPending reports whether a container has a postStart hook that has not succeeded in this instance.
func (p *podTruth) hookPending(spec *v1.Container, id string) bool {
	return spec != nil && spec.Lifecycle != nil && spec.Lifecycle.PostStart != nil && !p.hooked[id]
}

// runningAfterHook waits for the last hook of the pod, because the status is reported when SyncPod returns.
func runningAfterHook(t *truth) func(*Entry) string {
	type success struct {
		p  *podTruth
		at time.Time
	}
	c := faultFree{includeEvents: true}
	due := map[string]success{} // by the ID of the instance
	return func(e *Entry) string {
		if c.observe(t, e) {
			clear(due)
		}
		if e.Kind == HookSucceeded && c.holds(t) {
			p := t.pod(e.UID)
			for id, s := range due {
				if s.p == p {
					due[id] = success{p, t.now}
				}
			}
			due[e.Call] = success{p, t.now}
		}
		for _, id := range slices.Sorted(maps.Keys(due)) {
			s := due[id]
			is := s.p.instances[id]
			switch {
			case is == nil || is.State != runtime.ContainerRunning || !s.p.undisturbed() || s.p.isStarting():
				delete(due, id)
			case t.now.Sub(s.at) > reactionBound:
				delete(due, id)
				if reported := s.p.containerStatus(is.Name, id); reported == nil || reported.State.Running == nil {
					return fmt.Sprintf("%s of pod %s is not reported as running", id, s.p.uid)
				}
			}
		}
		return ""
	}
}

// isStarting reports whether a running container has a postStart hook that has not succeeded.
func (p *podTruth) isStarting() bool {
	return slices.ContainsFunc(p.running(), func(c *runtime.ContainerStatus) bool {
		spec, _ := p.container(c.Name)
		return p.hookPending(spec, c.ID)
	})
}
