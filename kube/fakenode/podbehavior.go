package fakenode

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podsource/manifest"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/status"
)

// A podBehavior is the behavior of a pod of a node.
type podBehavior struct {
	source, pod *v1.Pod                   // as returned by the API server, and with readiness probes
	containers  map[string]*fake.Behavior // by container name
	firstTry    map[string]time.Time      // of containers that cannot be started
	ready       *bool                     // set by SetReady; nil: that of the behavior
	evicted     bool
	unready     map[string]string // last instance that was reported as unready, by container name
}

// behaviorOf returns the behavior of a container.
func (d *podBehavior) behaviorOf(name string) *fake.Behavior {
	if b := d.containers[name]; b != nil {
		return b
	}
	return &zero
}

// behaviors returns the behavior of each container of a pod. An invalid one is returned as
// an error, with the zero behavior.
func (cfg *Config) behaviors(pod *v1.Pod) (map[string]*fake.Behavior, error) {
	of := map[string]*fake.Behavior{}
	var first error
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			b, err := cfg.behavior(pod, &list[i])
			if err != nil && first == nil {
				first = err
			}
			of[list[i].Name] = b
		}
	}
	return of, first
}

// prepare returns the pods for the node: each container has a readiness probe, whose result
// is that of its behavior; and defaults are set where the API server has not set them, such
// as an in-memory one.
func (a *agent) prepare(ctx context.Context, list []*v1.Pod) []*v1.Pod {
	a.mu.Lock()
	out := make([]*v1.Pod, len(list))
	current := make(map[types.UID]*podBehavior, len(list))
	var added []*v1.Pod
	for i, pod := range list {
		d := a.behaviors[pod.UID]
		if d == nil {
			d = &podBehavior{firstTry: firstTries(pod)}
			d.containers, _ = a.of.cfg.behaviors(pod) // admit returns the error
		}
		if d.source != pod {
			if d.source != nil && sharesSpec(d.source, pod) { // most versions differ in their status only
				spec := d.pod.Spec
				d.pod = new(*pod)
				d.pod.Spec = spec
			} else {
				d.pod = withProbes(pod)
			}
			d.source = pod
		}
		if current[pod.UID], out[i] = d, d.pod; a.behaviors[pod.UID] == nil {
			added = append(added, d.pod)
		}
	}
	a.behaviors = current
	a.mu.Unlock()
	a.restore(ctx, added)
	return out
}

// sharesSpec reports whether two versions of a pod have the same spec in memory, as package client
// returns versions whose specs are equal. A spec that withProbes completes is not considered.
func sharesSpec(a, b *v1.Pod) bool {
	x, y := a.Spec.Containers, b.Spec.Containers
	return b.Spec.RestartPolicy != "" && len(x) > 0 && len(x) == len(y) && &x[0] == &y[0]
}

// restore restores the pods that another process has run. It returns when they are in the
// cache: a worker that finds a pod without containers there would report them as lost.
func (a *agent) restore(ctx context.Context, added []*v1.Pod) {
	restored := slices.DeleteFunc(added, func(pod *v1.Pod) bool { return !a.runtime.Restore(pod) })
	now := time.Now()
	for _, pod := range restored {
		_, _ = a.agent.PLEG().GetNewerThan(ctx, pod.UID, now) // the in-memory runtime has no errors, and workers observe ctx too
	}
}

// firstTries returns the times of the first attempts to start the containers of a pod that
// cannot be started according to its status; nil if there are none.
func firstTries(pod *v1.Pod) map[string]time.Time {
	var out map[string]time.Time
	for _, s := range pod.Status.ContainerStatuses {
		if w := s.State.Waiting; pod.Status.StartTime != nil && w != nil && w.Message != "" && s.LastTerminationState.Terminated == nil {
			if out == nil {
				out = map[string]time.Time{}
			}
			out[s.Name] = pod.Status.StartTime.Time
		}
	}
	return out
}

// probe is the readiness probe of every container.
var probe = v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"behavior"}}}}

// withProbes returns pod with a readiness probe in each container that can have one.
func withProbes(pod *v1.Pod) *v1.Pod {
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
		*list = append([]v1.Container(nil), *list...) // those of the API server must not be modified
		for i := range *list {
			if c := &(*list)[i]; c.ReadinessProbe == nil && can(c) {
				c.ReadinessProbe = &probe
			}
		}
	}
	return pod
}

// decide implements runtimetest.Runtime.Decide.
func (a *agent) decide(pod *v1.Pod, c *v1.Container) *fake.Behavior {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := a.behaviors[pod.UID]
	if d == nil {
		return nil
	}
	first, retried := d.firstTry[c.Name]
	if !retried {
		first = time.Now()
	}
	b := startedAt(d.behaviorOf(c.Name), c, time.Since(first))
	if b.Fail != nil && !retried {
		if d.firstTry == nil {
			d.firstTry = map[string]time.Time{}
		}
		d.firstTry[c.Name] = first
	}
	return b
}

// addProbes adds the probe results that the behavior of the pod specifies.
func (a *agent) addProbes(f *status.Facts) { f.Probes = a.probed(f.Pod.UID) }

// probed returns the probe results that the behavior specifies, and starts a timer for the
// next change.
func (a *agent) probed(uid types.UID) map[string]runtime.ProbeStatus {
	cached, err := a.agent.PLEG().Get(uid)
	if err != nil {
		return map[string]runtime.ProbeStatus{}
	}
	evict := false
	defer func() {
		if evict {
			a.evict(uid, lowOnMemory)
		}
	}()
	a.mu.Lock()
	defer a.mu.Unlock()
	d := a.behaviors[uid]
	out := make(map[string]runtime.ProbeStatus, len(cached.Containers))
	for i := range cached.Containers {
		c := &cached.Containers[i]
		if _, ok := out[c.Name]; ok || c.State != runtime.ContainerRunning {
			continue
		}
		ready := true
		if d != nil {
			var evicted bool
			ready, evicted = a.stateLocked(uid, d, c)
			evict = evict || evicted
		}
		if d != nil {
			a.recordUnreadyLocked(d, c, ready)
		}
		result := runtime.ProbeFailure
		if ready {
			result = runtime.ProbeSuccess
		}
		out[c.Name] = runtime.ProbeStatus{Startup: runtime.ProbeSuccess, Readiness: result}
	}
	return out
}

// stateLocked reports whether a running container is ready, and whether its pod must be
// evicted now. It starts a timer for the next change.
func (a *agent) stateLocked(uid types.UID, d *podBehavior, c *runtime.ContainerStatus) (ready, evict bool) {
	b, age := d.behaviorOf(c.Name), time.Since(c.StartedAt)
	if !needsTimer(b) && d.ready == nil {
		return true, false
	}
	ready, next := b.Ready(age)
	if b.EvictAfter > 0 && !d.evicted {
		if wait := b.EvictAfter - age; wait > 0 {
			if next == 0 || wait < next {
				next = wait
			}
		} else {
			d.evicted, evict = true, true
		}
	}
	if next > 0 {
		a.startTimerLocked(uid, c.ID, next)
	}
	if d.ready != nil {
		ready = *d.ready
	}
	return ready, evict
}

// startTimerLocked syncs the pod after a duration, unless a timer for the container runs.
func (a *agent) startTimerLocked(uid types.UID, id string, in time.Duration) {
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
			a.agent.Table().PodChanged(uid)
		}
	})
}

// stopTimers stops all timers, and prevents further ones.
func (a *agent) stopTimers() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.timers {
		t.Stop()
	}
	a.timers = nil
}

// lowOnMemory is the message of an eviction without one.
const lowOnMemory = "The node was low on resource: memory."

// evict evicts a pod as under node pressure. It does not block.
func (a *agent) evict(uid types.UID, message string) <-chan podworker.Outcome {
	a.mu.Lock()
	if d := a.behaviors[uid]; d != nil {
		a.record(runtime.Event{Object: runtime.PodRef(d.source), Type: v1.EventTypeWarning, Reason: "Evicted", Message: message})
	}
	a.mu.Unlock()
	return a.agent.Kill(uid, podworker.KillOptions{
		Evict: true, GracePeriodSeconds: new(int64(0)),
		Termination: runtime.Termination{Failed: true, Reason: "Evicted", Message: message, Disruption: message},
	})
}
