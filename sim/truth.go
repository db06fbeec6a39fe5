package sim

import (
	"maps"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// A truth is what is so at one moment of a run, known to the laws and to no
// agent. It is made of the entries of the trace.
type truth struct {
	now  time.Time
	lies time.Time // until when agents may believe a list that was too old
	pods map[types.UID]*podTruth

	// remembers tells that the runtime keeps a record of what is removed from it.
	remembers bool
}

// A podTruth is what is so of one UID.
type podTruth struct {
	uid  types.UID
	name string

	// wanted is what its source has, nil if nothing; spec what it had last.
	wanted, spec *v1.Pod
	static       bool
	lives        int  // how many times it began to be wanted
	changed      bool // its spec was, at any time

	said    *v1.PodStatus // in this life
	failed  bool          // somebody else said that it has, in this life
	removed bool          // an operator removed what the runtime had of it, at any time
	evicted int           // by this agent; zero: by none

	instance map[string]*runtime.ContainerStatus // by ID; those that have not been removed
	sandbox  map[string]*runtime.SandboxStatus
	ever     map[string]*runtime.ContainerStatus // instance, and those that were removed, as they were last
	touched  time.Time                           // when something of it last changed, in the runtime or its source

	syncing   *v1.Pod                  // what SyncPod is working on; nil: it is not, or nobody notes its end
	granted   *v1.Pod                  // with the resources that were allocated to it last; nil: none were
	grants    map[string]bool          // all that ever were, as cpuOf has them
	cpu       map[string]int64         // that containers have, by ID
	mounted   map[string]bool          // volumes by name
	probe     map[probeKey]*probeTruth // of instances that have been probed
	condemned map[string]int           // by the ID of an instance whose liveness or startup probe has failed: the agent that knows

	synced  int      // life in which it was synced last
	killing *killing // the last one; nil: there was none
}

// A killing is a KillPod that has begun.
type killing struct {
	agent, life int
	at          time.Time
	grace       *int64
}

func newTruth() *truth { return &truth{pods: map[types.UID]*podTruth{}} }

// lifeAnnotation of a wanted pod counts how many times its UID began to be
// wanted. What an agent says and does of a pod may come late, when it is wanted
// anew already: this tells which life it is meant for.
const lifeAnnotation = "sim.kubeparts.io/life"

// life returns which of its lives a pod was in as the agent knows it; zero: the
// agent knows it from the runtime only.
func life(e *Entry) int {
	if e.Object == nil {
		return 0
	}
	n, _ := strconv.Atoi(e.Object.Annotations[lifeAnnotation]) // what was always there has one
	return n
}

// pod returns what is so of a UID, made if need be.
func (t *truth) pod(uid types.UID) *podTruth {
	p := t.pods[uid]
	if p == nil {
		p = &podTruth{
			uid: uid, instance: map[string]*runtime.ContainerStatus{}, sandbox: map[string]*runtime.SandboxStatus{},
			ever: map[string]*runtime.ContainerStatus{}, mounted: map[string]bool{}, grants: map[string]bool{}, cpu: map[string]int64{}, probe: map[probeKey]*probeTruth{}, condemned: map[string]int{},
		}
		t.pods[uid] = p
	}
	return p
}

// fooled reports whether an agent may believe what a stale list has told: that a
// pod has gone is all in it that is not looked at again (pleg-18). The next list
// may be minutes away.
func (t *truth) fooled() bool { return t.now.Before(t.lies) }

// take makes an entry part of the truth.
func (t *truth) take(e *Entry, now time.Time) {
	t.now = now
	if e.Kind == StepTaken && e.Step.Do == Fault && (e.Step.Kind == Stale || t.fooled()) { // any other puts off the next good list
		t.lies = latest(t.lies, now.Add(e.Step.For+e.Step.Delay+hangs+6*time.Minute))
	}
	if e.Kind == AgentDied || e.Kind == AgentBegan {
		for _, p := range t.pods {
			p.syncing = nil
		}
	}
	if e.UID == "" {
		return
	}
	p := t.pod(e.UID)
	if e.Pod != "" {
		p.name = e.Pod
	}
	switch e.Kind {
	case StepTaken:
		p.removed = p.removed || e.Step.Do == Remove
	case Wanted:
		p.wanted, p.static = e.Object, e.Static
		p.lives++
		p.said, p.failed = nil, false
	case Granted:
		p.granted = e.Object
		p.grants[cpuOf(e.Object)] = true
	case Resized:
		p.cpu[e.Call] = e.CPU
	case Changed, ResizeAsked, Deleting, Failed:
		p.wanted = e.Object
		p.changed = p.changed || e.Kind == Changed
		if e.Kind == Failed {
			p.said, p.failed = &e.Object.Status, true
		}
	case Gone:
		p.wanted = nil
	case Created, Started, Exited:
		p.instance[e.Container.ID] = e.Container
		p.ever[e.Container.ID] = e.Container
	case Removed:
		delete(p.instance, e.Container.ID)
	case SandboxReady, SandboxStopped:
		p.sandbox[e.Sandbox.ID] = e.Sandbox
	case SandboxRemoved:
		delete(p.sandbox, e.Sandbox.ID)
	case Said:
		if life(e) == p.lives {
			p.said = e.Status
		}
	case SyncBegan:
		p.synced, p.syncing = life(e), e.Object
	case SyncEnded:
		p.syncing = nil
	case Mounted:
		p.mounted[e.Volume] = true
	case Unmounted:
		delete(p.mounted, e.Volume)
	case Probed:
		p.probed(t, e)
	case Evicted:
		p.evicted = e.Agent
	case KillBegan:
		p.killing = &killing{agent: e.Agent, life: life(e), at: now, grace: e.Grace}
	}
	if p.wanted != nil {
		p.spec = p.wanted
	}
	if e.Kind != Said && e.Kind != Called && e.Kind != SyncBegan && e.Kind != SyncEnded && e.Kind != Noticed && e.Kind != Followed && e.Kind != Rested && e.Kind != Probed {
		p.touched = now
	}
}

// running returns the instances that run, by ID.
func (p *podTruth) running() (out []*runtime.ContainerStatus) {
	for _, id := range slices.Sorted(maps.Keys(p.instance)) {
		if c := p.instance[id]; c.State == runtime.ContainerRunning {
			out = append(out, c)
		}
	}
	return out
}

// newest returns the instance of the named container that was created last, of
// those that there are; nil: there is none.
func (p *podTruth) newest(name string) (newest *runtime.ContainerStatus) {
	for _, c := range p.instance {
		if c.Name == name && c.State != runtime.ContainerCreated && (newest == nil || c.RestartCount > newest.RestartCount || c.RestartCount == newest.RestartCount && c.CreatedAt.After(newest.CreatedAt)) {
			newest = c
		}
	}
	return newest
}

// before returns the instance of the same container and sandbox that came before
// c, if it has not been removed.
func (p *podTruth) before(c *runtime.ContainerStatus) (before *runtime.ContainerStatus) {
	for _, o := range p.instance {
		if o.Name == c.Name && o.SandboxID == c.SandboxID && o.ID != c.ID && o.State != runtime.ContainerCreated && (before == nil || o.CreatedAt.After(before.CreatedAt)) {
			before = o
		}
	}
	return before
}

// ready returns the IDs of the sandboxes that are ready.
func (p *podTruth) ready() (out []string) {
	for id, sb := range p.sandbox {
		if sb.State == runtime.SandboxReady {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// container returns the named container of the spec, and whether it is an init
// container. Nil: the spec has none.
func (p *podTruth) container(name string) (c *v1.Container, init bool) {
	if p.spec == nil {
		return nil, false
	}
	for i := range p.spec.Spec.InitContainers {
		if c := &p.spec.Spec.InitContainers[i]; c.Name == name {
			return c, true
		}
	}
	for i := range p.spec.Spec.Containers {
		if c := &p.spec.Spec.Containers[i]; c.Name == name {
			return c, false
		}
	}
	return nil, false
}

// over reports whether all regular containers of the pod have exited for good.
func (p *podTruth) over() bool {
	return p.spec != nil && !slices.ContainsFunc(p.spec.Spec.Containers, func(c v1.Container) bool {
		n := p.newest(c.Name)
		return n == nil || !p.final(n)
	})
}

// final reports whether an instance has exited for good by the restart policy
// of its pod and container.
func (p *podTruth) final(c *runtime.ContainerStatus) bool {
	spec, init := p.container(c.Name)
	if spec == nil || c.State != runtime.ContainerExited {
		return false
	}
	if init && !podspec.IsSidecar(spec) && c.ExitCode == 0 {
		return true
	}
	return podspec.ActionAfterExit(p.spec, spec, c.ExitCode) == podspec.NoRestart
}
