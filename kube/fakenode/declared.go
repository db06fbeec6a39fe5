package fakenode

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podsource/manifest"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
)

// declared is what a node knows of how a pod behaves.
type declared struct {
	read, as *v1.Pod              // as the API server has it, and as the node is given it
	of       map[string]Behaviour // of its containers
	tried    map[string]time.Time // when those that cannot be started were tried first
	ready    *bool                // what SetReady said; nil: nothing
	evicted  bool
}

// behaviours returns how the containers of a pod behave. One that cannot be read is
// an error; the others are there nevertheless.
func (cfg *Config) behaviours(pod *v1.Pod) (map[string]Behaviour, error) {
	of := map[string]Behaviour{}
	var first error
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			b, err := cfg.behaviour(pod, &list[i])
			if err != nil && first == nil {
				first = err
			}
			of[list[i].Name] = b
		}
	}
	return of, first
}

// adopt makes of pods of the API server those that the node is given. Each of their
// containers is probed for readiness, since that is what is declared; and where an
// API server fills nothing in, as one in memory, that is done here.
func (a *agent) adopt(list []*v1.Pod) []*v1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make([]*v1.Pod, len(list))
	there := make(map[types.UID]*declared, len(list))
	for i, pod := range list {
		d := a.declared[pod.UID]
		if d == nil {
			d = &declared{}
			d.of, _ = a.of.cfg.behaviours(pod) // admit says what is wrong
		}
		if d.read != pod {
			d.read, d.as = pod, probed(pod)
		}
		there[pod.UID], out[i] = d, d.as
	}
	a.declared = there
	return out
}

// probe is declared by every container of a fake node.
var probe = v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"declared"}}}}

// probed returns pod with a readiness probe in each container that can have one.
func probed(pod *v1.Pod) *v1.Pod {
	if pod.Spec.RestartPolicy == "" {
		pod = manifest.Default(pod)
	} else {
		pod = new(*pod)
	}
	for list, can := range map[*[]v1.Container]func(*v1.Container) bool{
		&pod.Spec.Containers: func(*v1.Container) bool { return true },
		&pod.Spec.InitContainers: func(c *v1.Container) bool {
			return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
		},
	} {
		*list = append([]v1.Container(nil), *list...) // the others are the API server's
		for i := range *list {
			if c := &(*list)[i]; c.ReadinessProbe == nil && can(c) {
				c.ReadinessProbe = &probe
			}
		}
	}
	return pod
}

// decide implements runtimetest.Runtime.Decide.
func (a *agent) decide(pod *v1.Pod, c *v1.Container) (runtimetest.Behaviour, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := a.declared[pod.UID]
	if d == nil {
		return runtimetest.Behaviour{}, false
	}
	first, again := d.tried[c.Name]
	if !again {
		first = time.Now()
	}
	b := d.of[c.Name].inRuntime(c, time.Since(first))
	if b.Fail != nil && !again {
		if d.tried == nil {
			d.tried = map[string]time.Time{}
		}
		d.tried[c.Name] = first
	}
	return b, true
}

// probed tells what the probes of a pod's containers would have come to. Who has to
// be looked at again later is then.
func (a *agent) probed(uid types.UID) map[string]status.Probed {
	seen, err := a.whole.PLEG().Get(uid)
	if err != nil {
		return map[string]status.Probed{}
	}
	evict := false
	defer func() {
		if evict {
			a.evict(uid, "The node was declared to be low on resource: memory.")
		}
	}()
	a.mu.Lock()
	defer a.mu.Unlock()
	d := a.declared[uid]
	out := make(map[string]status.Probed, len(seen.Containers))
	for i := range seen.Containers {
		c := &seen.Containers[i]
		if _, ok := out[c.Name]; ok || c.State != runtime.ContainerRunning {
			continue
		}
		ready := true
		if d != nil {
			var over bool
			ready, over = a.lookLocked(uid, d, c)
			evict = evict || over
		}
		result := status.ProbeFailure
		if ready {
			result = status.ProbeSuccess
		}
		out[c.Name] = status.Probed{Startup: status.ProbeSuccess, Readiness: result}
	}
	return out
}

// lookLocked reports whether a running container is ready, and whether its pod is to
// be evicted now. It sees to what comes later.
func (a *agent) lookLocked(uid types.UID, d *declared, c *runtime.ContainerStatus) (ready, evict bool) {
	b, age := d.of[c.Name], time.Since(c.StartedAt)
	if !b.watched() && d.ready == nil {
		return true, false
	}
	ready, next := b.ready(age)
	if b.Evict && !d.evicted {
		if wait := b.EvictAfter - age; wait > 0 {
			if next == 0 || wait < next {
				next = wait
			}
		} else {
			d.evicted, evict = true, true
		}
	}
	if next > 0 {
		a.againLocked(uid, c.ID, next)
	}
	if d.ready != nil {
		ready = *d.ready
	}
	return ready, evict
}

// againLocked has the pod looked at in that time, once for an instance.
func (a *agent) againLocked(uid types.UID, id string, in time.Duration) {
	if a.timers == nil || a.timers[id] != nil {
		return
	}
	a.timers[id] = time.AfterFunc(in, func() {
		a.mu.Lock()
		running := a.timers != nil
		if running {
			delete(a.timers, id)
		}
		a.mu.Unlock()
		if running {
			a.whole.Loop().PodChanged(uid)
		}
	})
}

// rest ends what waits.
func (a *agent) rest() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.timers {
		t.Stop()
	}
	a.timers = nil
}

// evict ends a pod as a node does that has too little of something. It does not
// block.
func (a *agent) evict(uid types.UID, message string) <-chan podworker.Outcome {
	return a.whole.Workers().Kill(uid, podworker.KillOptions{
		Evict: true, GracePeriodSeconds: new(int64(0)),
		Termination: runtime.Termination{Failed: true, Reason: "Evicted", Message: message, Disruption: message},
	})
}
