package sim

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// runtimeInvariants are the invariants of starts: which containers, in which order, how
// often.
func runtimeInvariants() []Invariant {
	return []Invariant{{
		Name: "one-live-instance", Rules: "lq-12", requiresCurrentLists: true,
		Description: "at most one instance of a container runs at a time",
		newCheck:    onStarted(oneLiveInstance),
	}, {
		Name: "one-ready-sandbox", Rules: "rt-22 … rt-26", requiresCurrentLists: true,
		Description: "at most one sandbox of a pod is ready at a time",
		newCheck:    oneReadySandbox,
	}, {
		Name: "restart-policy", Rules: "rt-33 … rt-38, rt-41", requiresCurrentLists: true,
		Description: "a container that has terminated and will not restart is not started again in its sandbox, and with policy Never in no other sandbox",
		newCheck:    onStarted(restartPolicy),
	}, {
		Name: "init-order", Rules: "rt-53 … rt-69",
		Description: "a container is started after each init container before it has succeeded, and each sidecar before it has started, in the same sandbox",
		newCheck:    initOrder,
	}, {
		Name: "back-off", Rules: "rt-89, rt-90, rt-91, rt-97, lq-29", requiresCurrentLists: true,
		Description: "after its second exit and each later one, a container is not started for at least 10 seconds",
		newCheck:    onStarted(backOff),
	}, {
		Name: "static-pod-exclusive", Rules: "inv-3", requiresCurrentLists: true,
		Description: "of several static pods with one full name, at most one has running containers",
		newCheck:    staticPodExclusive,
	}, {
		Name: "no-sync-hot-loop", Rules: "inv-16, lq-9, lq-10",
		Description: "an agent calls SyncPod at most 30 times per pod and second",
		newCheck:    noSyncHotLoop,
	}}
}

// onStarted returns a newCheck that applies check to each instance that starts.
func onStarted(check func(p *podTruth, c *runtime.ContainerStatus) string) func(*truth) func(*Entry) string {
	return func(t *truth) func(*Entry) string {
		return func(e *Entry) string {
			if e.Kind != Started {
				return ""
			}
			return check(t.pod(e.UID), e.Container)
		}
	}
}

func oneLiveInstance(p *podTruth, c *runtime.ContainerStatus) string {
	for _, other := range p.running() {
		if other.Name == c.Name && other.ID != c.ID {
			return fmt.Sprintf("%s was started while %s runs", c.ID, other.ID)
		}
	}
	return ""
}

func oneReadySandbox(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		if e.Kind == SandboxReady {
			if ready := t.pod(e.UID).readySandboxes(); len(ready) > 1 {
				return fmt.Sprintf("sandboxes %v are ready", ready)
			}
		}
		return ""
	}
}

func restartPolicy(p *podTruth, c *runtime.ContainerStatus) string {
	if p.spec != nil && podspec.MayRestartAll(p.spec) {
		return "" // a rule may restart all containers
	}
	// An instance that is stopped because of its probe is restarted whatever its exit
	// code (rule rt-48).
	if before := p.previous(c); before != nil && before.Image == c.Image && p.final(before) && p.unhealthy[before.ID] == 0 {
		return fmt.Sprintf("%s was started though %s has terminated with %d and must not restart", c.ID, before.ID, before.ExitCode)
	}
	if spec, init := p.container(c.Name); spec == nil || init {
		return ""
	}
	if p.spec.Spec.RestartPolicy != v1.RestartPolicyNever || slices.ContainsFunc(p.spec.Spec.Containers, func(c v1.Container) bool {
		return podspec.Restartable(p.spec, &c) // the pod is not terminated while it may restart
	}) {
		return ""
	}
	for _, other := range p.instances {
		if other.Name == c.Name && other.ID != c.ID && other.Image == c.Image && other.State != runtime.ContainerCreated { // it never ran
			return fmt.Sprintf("%s was started after %s, and the restart policy is Never", c.ID, other.ID)
		}
	}
	return ""
}

// initOrder records the containers that were started and that succeeded in each sandbox,
// because exited instances are removed.
func initOrder(t *truth) func(*Entry) string {
	type key struct{ sandbox, name string }
	started, succeeded := map[key]bool{}, map[key]bool{}
	return func(e *Entry) string {
		if e.Container == nil {
			return ""
		}
		c, p := e.Container, t.pod(e.UID)
		switch e.Kind {
		case Exited:
			if c.ExitCode == 0 {
				succeeded[key{c.SandboxID, c.Name}] = true
			}
		case Started:
			started[key{c.SandboxID, c.Name}] = true
			if p.spec == nil {
				return ""
			}
			_, restored := p.restored[c.SandboxID] // its init containers had succeeded before
			for i := range p.spec.Spec.InitContainers {
				init := &p.spec.Spec.InitContainers[i]
				k := key{c.SandboxID, init.Name}
				switch {
				case init.Name == c.Name:
					return ""
				case podspec.IsSidecar(init) && !started[k]:
					return fmt.Sprintf("%s was started before sidecar %s", c.Name, init.Name)
				case !podspec.IsSidecar(init) && !succeeded[k] && !restored:
					return fmt.Sprintf("%s was started before init container %s had succeeded", c.Name, init.Name)
				}
			}
		}
		return ""
	}
}

// backOff counts the exits in the sandbox of c, which every agent can observe.
func backOff(p *podTruth, c *runtime.ContainerStatus) string {
	if p.spec != nil && podspec.MayRestartAll(p.spec) || len(p.allocations) > 1 {
		return "" // a restart of all containers or after a resize (rule rt-89) has no back-off
	}
	before, crashes := p.previous(c), 0
	for _, o := range p.allInstances {
		if o.Name == c.Name && o.SandboxID == c.SandboxID && o.Image == c.Image && o.State == runtime.ContainerExited && p.unhealthy[o.ID] == 0 {
			crashes++
		}
	}
	if crashes < 2 || before == nil || p.unhealthy[before.ID] > 0 || // a restart because of a probe is in the same sync (rule rt-97)
		before.FinishedAt.Sub(before.StartedAt) > 10*time.Minute {
		return ""
	}
	if rest := c.StartedAt.Sub(before.FinishedAt); rest < 10*time.Second {
		return fmt.Sprintf("restart %d of %s was %v after its exit", c.RestartCount, c.Name, rest)
	}
	return ""
}

func staticPodExclusive(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		if e.Kind != Started || !t.pod(e.UID).static {
			return ""
		}
		for _, other := range t.pods {
			if other.uid != e.UID && other.static && other.name == e.Pod && len(other.running()) > 0 {
				return fmt.Sprintf("%s of %s was started while %s, with the same name, runs", e.Container.Name, e.UID, other.uid)
			}
		}
		return ""
	}
}

func noSyncHotLoop(t *truth) func(*Entry) string {
	last := map[types.UID][]time.Duration{}
	return func(e *Entry) string {
		if e.Kind != SyncPodCalled {
			return ""
		}
		times := append(last[e.UID], e.At)
		times = slices.DeleteFunc(times, func(at time.Duration) bool { return e.At-at > time.Second })
		last[e.UID] = times
		if len(times) > 30 {
			return fmt.Sprintf("%d in a second", len(times))
		}
		return ""
	}
}
