package chaos

import (
	"fmt"
	"k8s.io/apimachinery/pkg/types"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/sim"
)

// A checker checks the invariants on observations. Its methods are safe for concurrent use.
type checker struct {
	now         func() time.Time
	onViolation func(violation) // called with each violation, unless nil

	mu         sync.Mutex
	pods       map[string]*podHistory // by UID
	names      map[string]*podHistory // the newest pod of each name
	ready      map[string]box         // sandboxes, by ID
	sim        *sim.Checker           // of simInvariants
	began      time.Time
	checked    map[string]int // by invariant
	violations []violation
	tolerated  map[string]int  // defects of other programs, by description
	counted    map[string]bool // by tolerateOnce
	killedAt   []time.Time     // containerd
	context    string          // the current action, for violations
}

// A violation is a violated invariant.
type violation struct {
	at        time.Time
	invariant string
	pod       string // its name, or empty
	message   string
	during    string
}

func (v violation) String() string {
	return fmt.Sprintf("%s: %s: %s (%s)", v.invariant, v.pod, v.message, v.during)
}

// A podHistory is the observed state of one pod.
type podHistory struct {
	name, uid string
	shape     *shape

	last              *v1.Pod   // as observed last in the API
	deletionRequested bool      // its deletion was requested
	deletedAt         time.Time // when its deletion was requested, according to its status
	deleted           bool      // deleted from the API
	terminalSince     time.Time
	touched           bool // a fault affected it, and it has not recovered
	healing           int  // number of faults whose effects outlast their rounds
	disturb           int  // number of faults that affected it

	instances map[string]*runtime.ContainerStatus // by ID
	running   map[string]bool                     // IDs of those that were observed running and have not ended
}

// An instance is an instance of a container in the runtime. Statuses have the same ID.
type instance struct {
	runtime.ContainerStatus
	uid string // of the pod
}

func (is instance) running() bool { return is.State == runtime.ContainerRunning }

// A box is a sandbox of a pod.
type box struct {
	runtime.SandboxStatus
	uid, name string
}

func (b box) ready() bool { return b.State == runtime.SandboxReady }

func newChecker() *checker {
	c := &checker{
		now: time.Now, began: time.Now(), pods: map[string]*podHistory{}, names: map[string]*podHistory{},
		checked: map[string]int{}, tolerated: map[string]int{}, counted: map[string]bool{},
	}
	var fed []sim.Invariant
	for _, inv := range sim.Invariants() {
		if ofSim(inv.Name) {
			fed = append(fed, inv)
		}
	}
	c.sim = sim.NewChecker(fed, true, false)
	return c
}

// addLocked checks the invariants of package sim on an entry, which is about a pod.
func (c *checker) addLocked(e sim.Entry, h *podHistory) {
	now := c.now()
	e.At, e.UID, e.Pod = now.Sub(c.began), types.UID(h.uid), h.name
	for _, name := range simInvariants[e.Kind] {
		c.checked[name]++
	}
	for _, v := range c.sim.Add(e, now) {
		c.violatedLocked(v.Invariant, h.name, v.Message)
	}
}

// during sets the current action.
func (c *checker) during(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.context = what
}

// containerdKilled records that containerd is being killed.
func (c *checker) containerdKilled() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killedAt = append(c.killedAt, c.now())
}

// lost reports whether containerd was killed since a time in whole seconds, so that it may
// have missed events.
func (c *checker) lost(since time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lostLocked(since)
}

func (c *checker) lostLocked(since time.Time) bool {
	return slices.ContainsFunc(c.killedAt, func(at time.Time) bool { return at.After(since.Add(-2 * time.Second)) })
}

// tolerate counts a defect of another program.
func (c *checker) tolerate(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tolerated[what]++
}

// tolerateOnce counts a defect once per object.
func (c *checker) tolerateOnce(what, of string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.counted[what+of] {
		c.counted[what+of] = true
		c.tolerated[what]++
	}
}

// check checks an invariant on an observation.
func (c *checker) check(name string, holds bool, pod, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checkLocked(name, holds, pod, format, args...)
}

func (c *checker) checkLocked(name string, holds bool, pod, format string, args ...any) {
	c.checked[name]++
	if holds {
		return
	}
	c.violatedLocked(name, pod, fmt.Sprintf(format, args...))
}

func (c *checker) violatedLocked(name, pod, message string) {
	v := violation{at: c.now(), invariant: name, pod: pod, message: message, during: c.context}
	same := func(o violation) bool { return o.invariant == v.invariant && o.pod == v.pod && o.message == v.message }
	if !slices.ContainsFunc(c.violations, same) { // one that persists is reported once
		c.violations = append(c.violations, v)
		if c.onViolation != nil {
			c.onViolation(v)
		}
	}
}

// broken returns the violations so far.
func (c *checker) broken() []violation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.violations)
}

// total returns the number of checks.
func (c *checker) total() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, checks := range c.checked {
		n += checks
	}
	return n
}

func (c *checker) historyLocked(uid string) *podHistory {
	h := c.pods[uid]
	if h == nil {
		h = &podHistory{uid: uid, instances: map[string]*runtime.ContainerStatus{}, running: map[string]bool{}}
		c.pods[uid] = h
	}
	return h
}

// touch records that a fault affects the pod of that name, until it has settled.
func (c *checker) touch(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.names[name]; h != nil {
		h.touched = true
		h.disturb++
	}
}

// heals records that the effects of a fault on a pod outlast its round, or, with -1, that they
// have ended.
func (c *checker) heals(uid string, by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.historyLocked(uid).healing += by
}

// deleting records that the deletion of the pod of that name is about to be requested.
func (c *checker) deleting(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.names[name]; h != nil {
		h.deletionRequested = true
	}
}

// settled records that all pods have recovered.
func (c *checker) settled() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.pods {
		h.touched = false
	}
}

// podNamed returns the newest pod of that name in the API, nil if there is none.
func (c *checker) podNamed(name string) *v1.Pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.names[name]; h != nil && !h.deleted {
		return h.last
	}
	return nil
}

// known reports whether the API has a pod of that UID.
func (c *checker) known(uid string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.pods[uid]
	return h != nil && h.last != nil && !h.deleted
}

// existing returns the UIDs of all pods in the API.
func (c *checker) existing() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var uids []string
	for uid, h := range c.pods {
		if h.last != nil && !h.deleted {
			uids = append(uids, uid)
		}
	}
	return uids
}

// podName returns the name of a pod, or its UID if it has none.
func (c *checker) podName(uid string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.pods[uid]; h != nil && h.name != "" {
		return h.name
	}
	return uid
}

// count describes the number of pods by phase.
func (c *checker) count() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	phases := map[v1.PodPhase]int{}
	total, going := 0, 0
	for _, h := range c.pods {
		if h.last == nil || h.deleted {
			continue
		}
		total++
		if h.last.DeletionTimestamp != nil {
			going++
		} else {
			phases[h.last.Status.Phase]++
		}
	}
	return fmt.Sprintf("%d pods: %d run, %d pending, %d ended, %d are being deleted",
		total, phases[v1.PodRunning], phases[v1.PodPending]+phases[""], phases[v1.PodSucceeded]+phases[v1.PodFailed], going)
}
