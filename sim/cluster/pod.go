package cluster

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// podState is the state of a pod.
//
//	pending ── scheduled ──> starting ── image present ──> running ── exit ──> restarting
//	                                                          ↑                 │     │
//	                                                          └── after back-off ┘     │
//	terminated <── restart policy ─────────────────────────────────────────────────────┘
//	terminated <── exit ── stopping <── evicted ── running
type podState int

const (
	pending    podState = iota
	starting            // waits for its image
	running             // its container runs
	restarting          // its container waits for its back-off
	stopping            // its container is being stopped
	terminated
)

// A pod is one pod of the simulation; a replacement is another one.
type pod struct {
	cluster *Cluster
	index   int // of Config.Pods
	order   int // of creation
	spec    *Pod
	object  *v1.Pod
	result  *PodResult
	request Resources
	state   podState
	node    *node // nil while pending

	instances int           // of the container so far; events of earlier ones are ignored
	began     time.Duration // start of the last instance
	exit      *runtime.ContainerStatus

	memory, disk int64 // usage in the last measurement

	pullFailures int
}

func newPod(c *Cluster, index int, spec *Pod, name string) *pod {
	p := &pod{
		cluster: c, index: index, order: len(c.report.Pods), spec: spec,
		object: spec.Object(name, c.time()), request: spec.Requests,
		result: &PodResult{Name: name, Priority: spec.Priority, Created: c.now, Scheduled: never, Started: never, Finished: never, Phase: v1.PodPending},
	}
	c.counts.states[pending]++
	return p
}

func (p *pod) become(s podState) {
	p.cluster.counts.states[p.state]--
	p.state = s
	p.cluster.counts.states[s]++
}

// age returns the age of the running instance.
func (p *pod) age() time.Duration { return p.cluster.now - p.began }

// usage measures the container.
func (p *pod) usage() (memory, disk int64) {
	memory, disk = p.request.Memory, p.request.Disk
	if p.spec.Memory != nil {
		memory = p.spec.Memory.at(p.age())
	}
	if p.spec.Disk != nil {
		disk = p.spec.Disk.at(p.age())
	}
	return memory, disk
}

// sync computes the next action for the pod, with the plan of runtime/cri, and carries it out.
// The image is present and no instance runs.
func (p *pod) sync() {
	c := p.cluster
	status := &runtime.PodStatus{UID: p.object.UID}
	if p.exit != nil {
		status.Sandboxes = []runtime.SandboxStatus{{ID: sandboxID, State: runtime.SandboxReady}}
		status.Containers = []runtime.ContainerStatus{*p.exit}
	}
	next := plan.Compute(plan.Input{Pod: p.object, Status: status, Backoff: c.backoff, Now: c.time()})
	switch {
	case len(next.Start) == 0:
		phase := v1.PodSucceeded
		if p.exit.ExitCode != 0 {
			phase = v1.PodFailed
		}
		p.terminate(phase, p.exit.Reason)
	case next.Start[0].InBackoff():
		p.become(restarting)
		instances := p.instances
		c.queue.add(next.RetryAt().Sub(epoch), func() {
			if p.state == restarting && p.instances == instances {
				p.sync()
			}
		})
	default:
		c.table.Started(p.object, next.Start[0], c.time())
		p.run()
	}
}

// sandboxID is the ID of the sandbox of each pod.
const sandboxID = "sandbox"

// run starts an instance of the container.
func (p *pod) run() {
	c := p.cluster
	p.become(running)
	p.began = c.now
	p.instances++
	if p.result.Started == never {
		p.result.Started = c.now
	} else {
		p.result.Restarts++
		c.counts.restarts++
	}
	p.result.Phase = v1.PodRunning
	c.emit(ContainerStarted, p.result.Name, p.node.name, fmt.Sprint(p.result.Restarts))
	if p.spec.RunTime > 0 {
		instance := p.instances
		c.after(p.spec.RunTime, func() {
			if p.instances == instance && p.state == running {
				c.emit(ContainerExited, p.result.Name, p.node.name, fmt.Sprint(p.spec.ExitCode))
				p.exited(p.spec.ExitCode, "Completed")
			}
		})
	}
}

// exited ends the running instance and computes the next action.
func (p *pod) exited(code int32, reason string) {
	if code != 0 && reason == "Completed" {
		reason = "Error"
	}
	p.result.Ran += p.age()
	p.exit = &runtime.ContainerStatus{
		ID: fmt.Sprint("sim://", p.instances), Name: containerName, SandboxID: sandboxID, State: runtime.ContainerExited,
		RestartCount: int32(p.instances - 1), Hash: plan.Hash(&p.object.Spec.Containers[0]),
		CreatedAt: epoch.Add(p.began), StartedAt: epoch.Add(p.began), FinishedAt: p.cluster.time(),
		ExitCode: code, Reason: reason,
	}
	p.node.released(p)
	p.become(restarting)
	p.sync()
}

// oomKill kills the running instance. by is "limit" or "node".
func (p *pod) oomKill(by string) {
	p.result.OOMKills++
	p.result.Lost += p.age()
	p.cluster.counts.oomKills++
	p.node.result.OOMKills++
	p.cluster.emit(OOMKilled, p.result.Name, p.node.name, by)
	p.exited(137, "OOMKilled")
}

// evict stops a running pod with a grace period in seconds. It fails with the reason Evicted.
func (p *pod) evict(signal, message string, grace int64) {
	c, n := p.cluster, p.node
	c.counts.evicted++
	n.result.Evictions++
	p.result.Signal = signal
	p.result.Lost += p.age()
	c.emit(PodEvicted, p.result.Name, n.name, message)
	p.become(stopping)
	n.stopping++
	c.after(min(p.spec.StopTime, time.Duration(grace)*time.Second), func() {
		p.result.Ran += p.age()
		n.stopping--
		p.terminate(v1.PodFailed, "Evicted")
		if n.stopping == 0 {
			n.measureAfterEviction()
		}
	})
}

// recreateDelay is the time after which a controller replaces a pod.
const recreateDelay = time.Second

// terminate ends the pod.
func (p *pod) terminate(phase v1.PodPhase, reason string) {
	c := p.cluster
	p.become(terminated)
	p.result.Phase, p.result.Reason, p.result.Finished = phase, reason, c.now
	delete(c.byName, p.result.Name)
	if phase == v1.PodSucceeded {
		c.counts.succeeded++
	} else {
		c.counts.failed++
	}
	p.node.remove(p)
	c.table.Forget(p.object.UID)
	c.emit(PodTerminated, p.result.Name, p.node.name, reason)
	if p.spec.Recreate && phase == v1.PodFailed {
		c.after(recreateDelay, func() { c.replace(p.index) })
	}
	c.sched.request()
}

// customBackoff is plan.Delays with the delays of Policies.Backoff.
type customBackoff struct{ cluster *Cluster }

// Peek implements plan.Delays.
func (f customBackoff) Peek(pod *v1.Pod, _ *v1.Container, exited []*runtime.ContainerStatus, now time.Time) (delay time.Duration, until time.Time) {
	last := exited[0]
	delay = max(f.cluster.cfg.Policies.Backoff(Restart{Pod: f.cluster.byName[pod.Name].spec, Restarts: last.RestartCount, Ran: last.FinishedAt.Sub(last.StartedAt), ExitCode: last.ExitCode}), 0)
	if until = last.FinishedAt.Add(delay); !until.After(now) {
		until = time.Time{}
	}
	return delay, until
}
