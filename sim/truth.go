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

// A truth is the ground truth at one moment of a run. It is derived from the entries of
// the trace; invariants use it, agents have no access to it.
type truth struct {
	now        time.Time
	staleUntil time.Time // until then, agents may act on a stale list
	pods       map[types.UID]*podTruth
	prepared   map[string]bool // claims by name

	// keepsRecords is the result of Machine.KeepsRecords: restart counts and results
	// survive the removal of containers.
	keepsRecords bool

	// runsHooks is the result of Machine.RunsHooks.
	runsHooks bool

	// reportsStops reports that Entry.Stopped is set.
	reportsStops bool
}

// A podTruth is the ground truth about the pods with one UID.
type podTruth struct {
	uid  types.UID
	name string

	// desired is the pod in its source, nil if there is none; spec is the last one.
	desired, spec *v1.Pod
	static        bool
	incarnations  int             // number of times that the pod was added
	specChanged   bool            // ever
	claims        map[string]bool // of its specs, ever
	deleted       bool            // by an agent, ever: the UID of a pod of the API does not return outside of a simulation

	status            *v1.PodStatus // the last reported one, in this incarnation
	markedFailed      bool          // by another client, in this incarnation
	containersRemoved bool          // by an operator, ever
	evictedBy         int           // the agent; zero: none

	instances    map[string]*runtime.ContainerStatus // by ID; without removed ones
	sandboxes    map[string]*runtime.SandboxStatus   // by ID; without removed ones
	allInstances map[string]*runtime.ContainerStatus // by ID; with the last state of removed ones
	lastChange   time.Time                           // of anything in the runtime or the source

	syncing     *v1.Pod                  // the argument of the running SyncPod; nil: none, or its end is not recorded
	allocated   *v1.Pod                  // with the last allocated resources; nil: none
	allocations map[string]bool          // all allocations, as text of cpuRequests
	cpu         map[string]int64         // thousandths, by container ID
	mounted     map[string]bool          // volumes by name
	hooked      map[string]bool          // IDs of instances whose postStart hook has succeeded
	probes      map[probeKey]*probeTruth // of instances that have been probed
	unhealthy   map[string]int           // instances whose liveness or startup probe has failed: the agent that probed

	restored map[string][]string // IDs of the instances with which a sandbox was restored, by ID of the sandbox
	begun    map[string]bool     // IDs of instances that have been started, if a sandbox was restored

	syncedIncarnation int   // of the last SyncPod
	lastKill          *kill // nil: none
}

// A kill is a call of KillPod.
type kill struct {
	agent, incarnation int
	at                 time.Time
	grace              *int64
}

func newTruth() *truth { return &truth{pods: map[types.UID]*podTruth{}, prepared: map[string]bool{}} }

// incarnationAnnotation of a pod is the number of times that a pod with its UID was
// added. An agent's calls may be late, when the next pod with the same UID exists
// already; the annotation associates them with the right one.
const incarnationAnnotation = "sim.kubeparts.io/incarnation"

// incarnation returns the incarnation of the pod that an agent called with; zero: the
// runtime is the agent's only source of the pod.
func incarnation(e *Entry) int {
	if e.Object == nil {
		return 0
	}
	n, _ := strconv.Atoi(e.Object.Annotations[incarnationAnnotation]) // add sets it on every pod
	return n
}

// pod returns the podTruth of a UID. It creates one if there is none.
func (t *truth) pod(uid types.UID) *podTruth {
	p := t.pods[uid]
	if p == nil {
		p = &podTruth{
			uid: uid, instances: map[string]*runtime.ContainerStatus{}, sandboxes: map[string]*runtime.SandboxStatus{},
			allInstances: map[string]*runtime.ContainerStatus{}, mounted: map[string]bool{}, hooked: map[string]bool{}, claims: map[string]bool{}, allocations: map[string]bool{}, cpu: map[string]int64{}, probes: map[probeKey]*probeTruth{}, unhealthy: map[string]int{},
		}
		t.pods[uid] = p
	}
	return p
}

// listsMayBeStale reports whether an agent may act on a stale list. A pod that is
// missing in a list is treated as removed without an inspection (rule pleg-18), until
// the next list, which may be minutes later.
func (t *truth) listsMayBeStale() bool { return t.now.Before(t.staleUntil) }

// apply updates the truth with an entry.
func (t *truth) apply(e *Entry, now time.Time) {
	t.now = now
	if e.Kind == StepTaken && e.Step.Do == Fault && (e.Step.Kind == Stale || t.listsMayBeStale()) { // any other fault delays the next current list
		t.staleUntil = latest(t.staleUntil, now.Add(e.Step.For+e.Step.Delay+hangDuration+6*time.Minute))
	}
	if e.Kind == AgentKilled || e.Kind == AgentStarted {
		for _, p := range t.pods {
			p.syncing = nil
		}
	}
	switch e.Kind {
	case ClaimPrepared:
		t.prepared[e.Claim] = true
	case ClaimUnprepared:
		delete(t.prepared, e.Claim)
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
		p.containersRemoved = p.containersRemoved || e.Step.Do == Remove
	case PodAdded:
		p.desired, p.static = e.Object, e.Static
		p.incarnations++
		for _, name := range claimsOf(e.Object) {
			p.claims[name] = true
		}
		p.status, p.markedFailed = nil, false
	case ResourcesAllocated:
		p.allocated = e.Object
		p.allocations[cpuRequests(e.Object)] = true
	case Resized:
		p.cpu[e.Call] = e.CPU
	case PodChanged, ResizeRequested, DeletionRequested, MarkedFailed:
		p.desired = e.Object
		p.specChanged = p.specChanged || e.Kind == PodChanged
		if e.Kind == MarkedFailed {
			p.status, p.markedFailed = &e.Object.Status, true
		}
	case HookSucceeded:
		p.hooked[e.Call] = true
	case PodRestored:
		p.addRestored(e.Call)
	case PodRemoved:
		p.desired = nil
	case DeletePodCalled:
		p.deleted = true
	case Created, Started, Exited:
		p.instances[e.Container.ID] = e.Container
		p.allInstances[e.Container.ID] = e.Container
		if e.Kind == Started && p.begun != nil {
			p.begun[e.Container.ID] = true
		}
	case Removed:
		delete(p.instances, e.Container.ID)
	case SandboxReady, SandboxStopped:
		p.sandboxes[e.Sandbox.ID] = e.Sandbox
	case SandboxRemoved:
		delete(p.sandboxes, e.Sandbox.ID)
	case StatusUpdated:
		if incarnation(e) == p.incarnations {
			p.status = e.Status
		}
	case SyncPodCalled:
		p.syncedIncarnation, p.syncing = incarnation(e), e.Object
	case SyncPodReturned:
		p.syncing = nil
	case Mounted:
		p.mounted[e.Volume] = true
	case Unmounted:
		delete(p.mounted, e.Volume)
	case Probed:
		p.addProbeRun(t, e)
	case Evicted:
		p.evictedBy = e.Agent
	case KillPodCalled:
		p.lastKill = &kill{agent: e.Agent, incarnation: incarnation(e), at: now, grace: e.Grace}
	}
	if p.desired != nil {
		p.spec = p.desired
	}
	if e.Kind != StatusUpdated && e.Kind != Called && e.Kind != SyncPodCalled && e.Kind != SyncPodReturned && e.Kind != EventReceived && e.Kind != EventFollowed && e.Kind != PodSettled && e.Kind != Probed {
		p.lastChange = now
	}
}

// running returns the running instances, sorted by ID.
func (p *podTruth) running() (out []*runtime.ContainerStatus) {
	for _, id := range slices.Sorted(maps.Keys(p.instances)) {
		if c := p.instances[id]; c.State == runtime.ContainerRunning {
			out = append(out, c)
		}
	}
	return out
}

// newest returns the newest existing instance of the named container; nil: there is
// none.
func (p *podTruth) newest(name string) (newest *runtime.ContainerStatus) {
	for _, c := range p.instances {
		if c.Name == name && c.State != runtime.ContainerCreated && (newest == nil || c.RestartCount > newest.RestartCount || c.RestartCount == newest.RestartCount && c.CreatedAt.After(newest.CreatedAt)) {
			newest = c
		}
	}
	return newest
}

// previous returns the newest other instance of the same container and sandbox; nil:
// there is none.
func (p *podTruth) previous(c *runtime.ContainerStatus) (before *runtime.ContainerStatus) {
	for _, o := range p.instances {
		if o.Name == c.Name && o.SandboxID == c.SandboxID && o.ID != c.ID && o.State != runtime.ContainerCreated && (before == nil || o.CreatedAt.After(before.CreatedAt)) {
			before = o
		}
	}
	return before
}

// readySandboxes returns the IDs of the ready sandboxes, sorted.
func (p *podTruth) readySandboxes() (out []string) {
	for id, sb := range p.sandboxes {
		if sb.State == runtime.SandboxReady {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// container returns the named container of the spec, and whether it is an init
// container. It returns nil if the spec has none of that name.
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

// terminated reports whether all regular containers of the pod have terminated and will
// not restart.
func (p *podTruth) terminated() bool {
	return p.spec != nil && !slices.ContainsFunc(p.spec.Spec.Containers, func(c v1.Container) bool {
		n := p.newest(c.Name)
		return n == nil || !p.final(n)
	})
}

// final reports whether an instance has exited and will not be restarted according to
// the restart policy of its pod and container.
func (p *podTruth) final(c *runtime.ContainerStatus) bool {
	spec, _ := p.container(c.Name)
	if spec == nil || c.State != runtime.ContainerExited {
		return false
	}
	return podspec.ActionAfterExit(p.spec, spec, podspec.ExitOf(c)) == podspec.NoRestart
}
