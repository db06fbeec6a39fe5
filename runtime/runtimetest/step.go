package runtimetest

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/internal/restart"
	"github.com/kubeparts/kubeparts/runtime"
)

// A step is what one SyncPod has to do. The zero value is nothing. It is a
// smaller and separate answer to the question that runtime/cri/plan answers in
// full (no resize), so that each can be held against the other.
type step struct {
	stop    bool     // nothing of the pod is to run any more
	reset   bool     // forget every instance first: the pod begins anew (rt-140)
	sandbox bool     // make a new sandbox
	kill    []string // IDs to stop before the starts
	start   []start
}

// A start is a container to be started; they are started in order.
type start struct {
	container *v1.Container
	turn      int       // as instance.turn
	notBefore time.Time // end of its back-off; zero or past: now
}

// decide returns the step from what is seen to what pod wants.
func decide(pod *v1.Pod, seen *runtime.PodStatus, probes *runtime.ProbeResults, backoff time.Duration) step {
	if pod.DeletionTimestamp != nil { // rt-31
		return step{}
	}
	d := decision{pod: pod, seen: seen, probes: probes, backoff: backoff}
	if len(seen.Sandboxes) > 0 && seen.Sandboxes[0].State == runtime.SandboxReady {
		d.sandbox = seen.Sandboxes[0].ID
		if d.restartAll() {
			d.step.reset = true
			d.seen = &runtime.PodStatus{UID: seen.UID}
		}
		d.inPlace()
	} else {
		d.anew()
	}
	return d.step
}

// A decision is a step being made.
type decision struct {
	pod     *v1.Pod
	seen    *runtime.PodStatus
	probes  *runtime.ProbeResults // nil: nobody probes
	backoff time.Duration
	sandbox string // the one that is ready
	step    step
}

// anew decides for a pod without a ready sandbox (rt-39 … rt-44). Whose
// containers have all had their run is not begun anew; one with a policy of its
// own, by which it is to go on, keeps the pod going.
func (d *decision) anew() {
	spec := &d.pod.Spec
	ever, once := false, spec.RestartPolicy == v1.RestartPolicyNever && len(d.seen.Containers) > 0
	for i := range spec.Containers {
		c := &spec.Containers[i]
		last := d.seen.Container(c.Name)
		ever = ever || last != nil
		if last != nil && last.State == runtime.ContainerExited && restart.After(d.pod, c, last.ExitCode) == restart.Final { // rt-42
			continue
		}
		once = once && !restart.Restartable(d.pod, c)
		d.add(c, last, 0)
	}
	if once || len(d.step.start) == 0 && ever || d.initFailed() { // rt-41, rt-43
		d.step = step{stop: true}
		return
	}
	d.step.sandbox = true
	for i := range d.seen.Containers { // what still runs has no network
		if c := &d.seen.Containers[i]; c.State == runtime.ContainerRunning {
			d.step.kill = append(d.step.kill, c.ID)
		}
	}
	if len(spec.InitContainers) > 0 { // rt-44
		d.step.start = nil
		d.addInit(0)
	}
}

// initFailed reports whether an init container has failed for good, so that a new
// sandbox leads nowhere.
func (d *decision) initFailed() bool {
	return slices.ContainsFunc(d.pod.Spec.InitContainers, func(c v1.Container) bool {
		last := d.seen.Container(c.Name)
		return last != nil && last.State == runtime.ContainerExited && last.ExitCode != 0 &&
			restart.After(d.pod, &c, last.ExitCode) == restart.Final
	})
}

// inPlace decides for a pod whose sandbox is ready (rt-45 … rt-51).
func (d *decision) inPlace() {
	spec := &d.pod.Spec
	for i := range spec.EphemeralContainers { // rt-45
		c := v1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon)
		if d.seen.Container(c.Name) == nil {
			d.add(&c, nil, 0)
		}
	}
	if !d.initialised() {
		return
	}
	alive := false
	for i := range spec.Containers {
		c := &spec.Containers[i]
		switch at := d.latest(c.Name, ""); {
		case at == nil:
			d.add(c, nil, 0)
		case at.State == runtime.ContainerRunning:
			d.keep(c, at, 0)
		case restart.After(d.pod, c, at.ExitCode) == restart.Final:
			continue
		default:
			d.add(c, at, 0)
		}
		alive = true
	}
	if !alive { // rt-50
		d.step = step{stop: true}
	}
}

// initialised reports whether the init containers let the regular ones run,
// and adds what they need (rt-53 … rt-69). Only the furthest one begun decides,
// and only what ran in the present sandbox counts: a new one begins anew.
func (d *decision) initialised() bool {
	inits := d.pod.Spec.InitContainers
	done := len(inits) == 0 || slices.ContainsFunc(d.pod.Spec.Containers, func(c v1.Container) bool {
		at := d.latest(c.Name, d.sandbox)
		return at != nil && at.State == runtime.ContainerRunning // rt-54
	})
	last := -1
	for i := range inits {
		if done || d.latest(inits[i].Name, d.sandbox) != nil {
			last = i
		}
	}
	ready := true // the last one lets the next one start
	for i := 0; i <= last; i++ {
		c, at := &inits[i], d.latest(inits[i].Name, d.sandbox)
		running := at != nil && at.State == runtime.ContainerRunning
		switch {
		case restart.Sidecar(c) && running: // rt-61
			d.keep(c, at, len(inits)-i)
			if i == last && !done && !d.started(c, at) { // rt-60
				ready = false
			}
		case restart.Sidecar(c): // rt-56, rt-63
			d.add(c, at, len(inits)-i)
			ready = i < last
		case done || i < last: // rt-57
		case running: // rt-59
			ready = false
		case at.ExitCode == 0: // rt-65
		case restart.After(d.pod, c, at.ExitCode) == restart.Final: // rt-64
			d.step = step{stop: true}
			return false
		default:
			d.add(c, at, 0)
			ready = false
		}
	}
	if ready && last+1 < len(inits) {
		d.addInit(last + 1)
		ready = false
	}
	return done || ready
}

// latest returns the instance that speaks for the named container: one that
// runs, wherever (lq-12), else the newest in the sandbox ("": in any), or nil.
func (d *decision) latest(name, sandbox string) *runtime.ContainerStatus {
	var latest *runtime.ContainerStatus
	for i := range d.seen.Containers {
		c := &d.seen.Containers[i]
		if c.Name != name {
			continue
		}
		if c.State == runtime.ContainerRunning {
			return c
		}
		if latest == nil && (sandbox == "" || c.SandboxID == sandbox) {
			latest = c
		}
	}
	return latest
}

// started reports whether what comes after the running sidecar may start.
func (d *decision) started(c *v1.Container, at *runtime.ContainerStatus) bool {
	return c.StartupProbe == nil || d.probes == nil || d.probes.Startup[at.ID] == runtime.ProbeSuccess
}

// failed reports whether a probe has condemned the running instance (rt-48).
func (d *decision) failed(at *runtime.ContainerStatus) bool {
	return d.probes != nil && (d.probes.Liveness[at.ID] == runtime.ProbeFailure || d.probes.Startup[at.ID] == runtime.ProbeFailure)
}

// keep leaves a running instance alone, unless its definition changed (rt-30) or
// a probe failed, and ends others of its name: two are never wanted.
func (d *decision) keep(c *v1.Container, at *runtime.ContainerStatus, turn int) {
	for i := range d.seen.Containers {
		other := &d.seen.Containers[i]
		if other != at && other.Name == c.Name && other.State == runtime.ContainerRunning {
			d.step.kill = append(d.step.kill, other.ID)
		}
	}
	if changed := at.Image != c.Image; changed || d.failed(at) {
		d.step.kill = append(d.step.kill, at.ID)
		if changed || restart.Policy(d.pod, c) != v1.RestartPolicyNever { // rt-49
			d.add(c, at, turn)
		}
	}
}

func (d *decision) addInit(i int) {
	c, turn := &d.pod.Spec.InitContainers[i], 0
	if restart.Sidecar(c) {
		turn = len(d.pod.Spec.InitContainers) - i
	}
	d.add(c, d.seen.Container(c.Name), turn)
}

// add starts c, after its back-off if last exited.
func (d *decision) add(c *v1.Container, last *runtime.ContainerStatus, turn int) {
	s := start{container: c, turn: turn}
	if last != nil && last.State == runtime.ContainerExited {
		s.notBefore = last.FinishedAt.Add(delay(d.backoff, last))
	}
	d.step.start = append(d.step.start, s)
}

// delay returns how long after its exit a container waits for its next start.
// It is read off the restart count alone (rt-91, lq-29); a container that ran
// for long begins with no delay again (rt-92), but goes on at its count's.
func delay(backoff time.Duration, last *runtime.ContainerStatus) time.Duration {
	const most = 30
	if last.RestartCount == 0 || last.FinishedAt.Sub(last.StartedAt) > 2*most*backoff {
		return 0
	}
	return backoff * time.Duration(min(most, 1<<min(last.RestartCount-1, 5)))
}

// restartAll reports whether an exit asks for the whole pod to begin anew
// (rt-138).
func (d *decision) restartAll() bool {
	for c := range podspec.Containers(d.pod) {
		at := d.latest(c.Name, "")
		if at != nil && at.State == runtime.ContainerExited && restart.After(d.pod, c, at.ExitCode) == restart.All {
			return true
		}
	}
	return false
}
