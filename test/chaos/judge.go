package chaos

import (
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
)

// A judge checks the invariants on observations. Its methods are safe for concurrent use.
type judge struct {
	now         func() time.Time
	onViolation func(violation) // called with each violation, unless nil

	mu         sync.Mutex
	pods       map[string]*podHistory // by UID
	names      map[string]*podHistory // the newest pod of each name
	checked    map[string]int         // by invariant
	violations []violation
	tolerated  map[string]int  // defects of other programs, by description
	told       map[string]bool // counted by tolerateOnce
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
	toldAt            time.Time // of the deletion
	deleted           bool      // deleted from the API
	terminalSince     time.Time
	counts            map[string]int32  // reported restarts, by container
	shown             map[string]string // the instance reported last, by container
	touched           bool              // a fault affected it, and it has not recovered
	healing           int               // number of faults whose effects outlast their rounds
	disturb           int               // number of faults that affected it

	instances map[string]*instance
	highest   map[string]uint32 // attempts, by container
}

// An instance is an instance of a container in the runtime.
type instance struct {
	id, uid, container string
	attempt            uint32
	created            time.Time
	running            bool
	exited             bool
	code               int32
	finished           time.Time

	ran bool // observed running
}

// A box is a sandbox of a pod.
type box struct {
	id, uid, name string
	ready         bool
}

func newJudge() *judge {
	return &judge{
		now: time.Now, pods: map[string]*podHistory{}, names: map[string]*podHistory{}, checked: map[string]int{}, tolerated: map[string]int{}, told: map[string]bool{},
	}
}

// during sets the current action.
func (j *judge) during(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.context = what
}

// containerdKilled records that containerd is being killed.
func (j *judge) containerdKilled() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.killedAt = append(j.killedAt, j.now())
}

// lost reports whether containerd was killed since a time in whole seconds, so that it may
// have missed events.
func (j *judge) lost(since time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lostLocked(since)
}

func (j *judge) lostLocked(since time.Time) bool {
	return slices.ContainsFunc(j.killedAt, func(at time.Time) bool { return at.After(since.Add(-2 * time.Second)) })
}

// tolerate counts a defect of another program.
func (j *judge) tolerate(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tolerated[what]++
}

// tolerateOnce counts a defect once per object.
func (j *judge) tolerateOnce(what, of string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.told[what+of] {
		j.told[what+of] = true
		j.tolerated[what]++
	}
}

// check checks an invariant on an observation.
func (j *judge) check(name string, holds bool, pod, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.checkLocked(name, holds, pod, format, args...)
}

func (j *judge) checkLocked(name string, holds bool, pod, format string, args ...any) {
	j.checked[name]++
	if holds {
		return
	}
	v := violation{at: j.now(), invariant: name, pod: pod, message: fmt.Sprintf(format, args...), during: j.context}
	same := func(o violation) bool { return o.invariant == v.invariant && o.pod == v.pod && o.message == v.message }
	if !slices.ContainsFunc(j.violations, same) { // one that persists is reported once
		j.violations = append(j.violations, v)
		if j.onViolation != nil {
			j.onViolation(v)
		}
	}
}

// broken returns the violations so far.
func (j *judge) broken() []violation {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.violations)
}

// total returns the number of checks.
func (j *judge) total() (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.checked {
		n += c
	}
	return n
}

func (j *judge) historyLocked(uid string) *podHistory {
	l := j.pods[uid]
	if l == nil {
		l = &podHistory{uid: uid, counts: map[string]int32{}, shown: map[string]string{}, instances: map[string]*instance{}, highest: map[string]uint32{}}
		j.pods[uid] = l
	}
	return l
}

// touch records that a fault affects the pod of that name, until it has settled.
func (j *judge) touch(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if l := j.names[name]; l != nil {
		l.touched = true
		l.disturb++
	}
}

// heals records that the effects of a fault on a pod outlast its round, or, with -1, that they
// have ended.
func (j *judge) heals(uid string, by int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.historyLocked(uid).healing += by
}

// deleting records that the deletion of the pod of that name is about to be requested.
func (j *judge) deleting(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if l := j.names[name]; l != nil {
		l.deletionRequested = true
	}
}

// settled records that all pods have recovered.
func (j *judge) settled() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range j.pods {
		l.touched = false
	}
}

// named returns the newest pod of that name in the API, nil if there is none.
func (j *judge) podNamed(name string) *v1.Pod {
	j.mu.Lock()
	defer j.mu.Unlock()
	if l := j.names[name]; l != nil && !l.deleted {
		return l.last
	}
	return nil
}

// known reports whether the API has a pod of that UID.
func (j *judge) known(uid string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	l := j.pods[uid]
	return l != nil && l.last != nil && !l.deleted
}

// there returns the UIDs of all pods in the API.
func (j *judge) existing() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var uids []string
	for uid, l := range j.pods {
		if l.last != nil && !l.deleted {
			uids = append(uids, uid)
		}
	}
	return uids
}

// was returns the name of a pod, or its UID if it has none.
func (j *judge) podName(uid string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if l := j.pods[uid]; l != nil && l.name != "" {
		return l.name
	}
	return uid
}

// count describes the number of pods by phase.
func (j *judge) count() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	phases := map[v1.PodPhase]int{}
	total, going := 0, 0
	for _, l := range j.pods {
		if l.last == nil || l.deleted {
			continue
		}
		total++
		if l.last.DeletionTimestamp != nil {
			going++
		} else {
			phases[l.last.Status.Phase]++
		}
	}
	return fmt.Sprintf("%d pods: %d run, %d pending, %d ended, %d are being deleted",
		total, phases[v1.PodRunning], phases[v1.PodPending]+phases[""], phases[v1.PodSucceeded]+phases[v1.PodFailed], going)
}
