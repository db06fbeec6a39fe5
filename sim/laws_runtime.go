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

// runtimeLaws are about what is started, in which order, and how often.
func runtimeLaws() []Invariant {
	return []Invariant{{
		Name: "one-live-instance", Rules: "lq-12", lists: true,
		Says:  "of one container of one pod at most one instance runs at a time",
		begin: onStarted(oneLiveInstance),
	}, {
		Name: "one-ready-sandbox", Rules: "rt-22 … rt-26", lists: true,
		Says:  "of one pod at most one sandbox is ready at a time",
		begin: oneReadySandbox,
	}, {
		Name: "restart-policy", Rules: "rt-33 … rt-38, rt-41", lists: true,
		Says:  "a container that has exited for good is not started again in its sandbox, and with policy Never in no other",
		begin: onStarted(restartPolicy),
	}, {
		Name: "init-order", Rules: "rt-53 … rt-69",
		Says:  "a container starts when each init container before it has succeeded in its sandbox, and each sidecar before it has started there",
		begin: initOrder,
	}, {
		Name: "back-off", Rules: "rt-89, rt-90, rt-91, rt-97, lq-29", lists: true,
		Says:  "after its second exit and those that follow, a container rests for 10 seconds or more before it is started again",
		begin: onStarted(backOff),
	}, {
		Name: "static-alone", Rules: "inv-3", lists: true,
		Says:  "of the static pods of one full name at most one runs anything at a time",
		begin: staticAlone,
	}, {
		Name: "no-hot-loop", Rules: "inv-16, lq-9, lq-10",
		Says:  "an agent does not call SyncPod for one pod more than 30 times in a second",
		begin: noHotLoop,
	}}
}

// onStarted makes a law of what is to hold of each instance that starts.
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
			if ready := t.pod(e.UID).ready(); len(ready) > 1 {
				return fmt.Sprintf("sandboxes %v are ready", ready)
			}
		}
		return ""
	}
}

func restartPolicy(p *podTruth, c *runtime.ContainerStatus) string {
	if p.spec != nil && podspec.MayRestartAll(p.spec) {
		return "" // all may start over
	}
	// One that was to be restarted for its probe is, however it exits meanwhile (rt-48).
	if before := p.before(c); before != nil && before.Image == c.Image && p.final(before) && p.condemned[before.ID] == 0 {
		return fmt.Sprintf("%s was started though %s has exited for good, with %d", c.ID, before.ID, before.ExitCode)
	}
	if spec, init := p.container(c.Name); spec == nil || init {
		return ""
	}
	if p.spec.Spec.RestartPolicy != v1.RestartPolicyNever || slices.ContainsFunc(p.spec.Spec.Containers, func(c v1.Container) bool {
		return podspec.Restartable(p.spec, &c) // it keeps the pod going
	}) {
		return ""
	}
	for _, other := range p.instance {
		if other.Name == c.Name && other.ID != c.ID && other.Image == c.Image {
			return fmt.Sprintf("%s was started after %s, of a pod that is never restarted", c.ID, other.ID)
		}
	}
	return ""
}

// initOrder remembers what was started, and what succeeded, in which sandbox,
// since dead instances are removed.
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
			for i := range p.spec.Spec.InitContainers {
				init := &p.spec.Spec.InitContainers[i]
				k := key{c.SandboxID, init.Name}
				switch {
				case init.Name == c.Name:
					return ""
				case podspec.IsSidecar(init) && !started[k]:
					return fmt.Sprintf("%s was started before sidecar %s", c.Name, init.Name)
				case !podspec.IsSidecar(init) && !succeeded[k]:
					return fmt.Sprintf("%s was started before init container %s had succeeded", c.Name, init.Name)
				}
			}
		}
		return ""
	}
}

// backOff counts the crashes that everybody can know of: those in this sandbox.
func backOff(p *podTruth, c *runtime.ContainerStatus) string {
	if p.spec != nil && podspec.MayRestartAll(p.spec) || len(p.grants) > 1 {
		return "" // what starts over, or has been resized (rt-89), does so without a rest
	}
	before, crashes := p.before(c), 0
	for _, o := range p.ever {
		if o.Name == c.Name && o.SandboxID == c.SandboxID && o.Image == c.Image && o.State == runtime.ContainerExited && p.condemned[o.ID] == 0 {
			crashes++
		}
	}
	if crashes < 2 || before == nil || p.condemned[before.ID] > 0 || // stopped for its probe, and started in the same sync (rt-97)
		before.FinishedAt.Sub(before.StartedAt) > 10*time.Minute {
		return ""
	}
	if rest := c.StartedAt.Sub(before.FinishedAt); rest < 10*time.Second {
		return fmt.Sprintf("restart %d of %s came %v after its exit", c.RestartCount, c.Name, rest)
	}
	return ""
}

func staticAlone(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		if e.Kind != Started || !t.pod(e.UID).static {
			return ""
		}
		for _, other := range t.pods {
			if other.uid != e.UID && other.static && other.name == e.Pod && len(other.running()) > 0 {
				return fmt.Sprintf("%s of %s was started while %s, of the same name, runs", e.Container.Name, e.UID, other.uid)
			}
		}
		return ""
	}
}

func noHotLoop(t *truth) func(*Entry) string {
	last := map[types.UID][]time.Duration{}
	return func(e *Entry) string {
		if e.Kind != SyncBegan {
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
