package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
)

// A judge holds the laws against what is seen. It is told facts, by whoever sees
// them, on any goroutine.
type judge struct {
	now func() time.Time
	cry func(violation) // is told of each violation; nil: nobody is

	mu         sync.Mutex
	pods       map[string]*life // by UID
	names      map[string]*life // the newest of each name
	checked    map[string]int   // by law
	violations []violation
	tolerated  map[string]int  // what is somebody else's fault, in words
	told       map[string]bool // what tolerateOnce has counted
	killedAt   []time.Time     // containerd
	context    string          // what is being done: it is told with a violation
}

// A violation is a law broken.
type violation struct {
	at     time.Time
	law    string
	pod    string // its name; empty: of none
	what   string
	during string
}

func (v violation) String() string {
	return fmt.Sprintf("%s: %s: %s (%s)", v.law, v.pod, v.what, v.during)
}

// A life is what is known of one pod.
type life struct {
	name, uid string
	shape     *shape

	last    *v1.Pod   // as the API had it last
	asked   bool      // somebody wants it gone
	toldAt  time.Time // when it was told to end
	gone    bool      // from the API
	over    time.Time
	counts  map[string]int32  // restarts told, by container
	shown   map[string]string // the instance told last, by container
	touched bool              // a fault is about this pod, and it has not recovered
	healing int               // faults about it that take longer to recover from than others
	disturb int               // how many faults were about it

	instances map[string]*instance
	highest   map[string]uint32 // attempts, by container
}

// An instance is one of a container, as the runtime has it.
type instance struct {
	id, uid, container string
	attempt            uint32
	created            time.Time
	running            bool
	exited             bool
	code               int32
	finished           time.Time

	ran bool // was seen running
}

// A box is a pod's sandbox.
type box struct {
	id, uid, name string
	ready         bool
}

func newJudge() *judge {
	return &judge{
		now: time.Now, pods: map[string]*life{}, names: map[string]*life{}, checked: map[string]int{}, tolerated: map[string]int{}, told: map[string]bool{},
	}
}

// during says what is being done from now on.
func (j *judge) during(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.context = what
}

// containerdKilled says that containerd is killed now.
func (j *judge) containerdKilled() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.killedAt = append(j.killedAt, j.now())
}

// lost reports whether containerd was killed since then, a time in whole seconds:
// it may not know all of what went on.
func (j *judge) lost(since time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lostLocked(since)
}

func (j *judge) lostLocked(since time.Time) bool {
	return slices.ContainsFunc(j.killedAt, func(at time.Time) bool { return at.After(since.Add(-2 * time.Second)) })
}

// tolerate counts something that is not as it should be and not ours.
func (j *judge) tolerate(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tolerated[what]++
}

// tolerateOnce counts it once for each of those that it is about.
func (j *judge) tolerateOnce(what, of string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.told[what+of] {
		j.told[what+of] = true
		j.tolerated[what]++
	}
}

// check holds one law against one fact.
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
	v := violation{at: j.now(), law: name, pod: pod, what: fmt.Sprintf(format, args...), during: j.context}
	same := func(o violation) bool { return o.law == v.law && o.pod == v.pod && o.what == v.what }
	if !slices.ContainsFunc(j.violations, same) { // one that lasts is told once
		j.violations = append(j.violations, v)
		if j.cry != nil {
			j.cry(v)
		}
	}
}

// broken returns the violations so far.
func (j *judge) broken() []violation {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.violations)
}

// total is how often any law was checked.
func (j *judge) total() (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.checked {
		n += c
	}
	return n
}

func (j *judge) lifeLocked(uid string) *life {
	l := j.pods[uid]
	if l == nil {
		l = &life{uid: uid, counts: map[string]int32{}, shown: map[string]string{}, instances: map[string]*instance{}, highest: map[string]uint32{}}
		j.pods[uid] = l
	}
	return l
}

// touch says that a fault is about the pod of that name: what happens to it until
// it has settled is no wonder.
func (j *judge) touch(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if l := j.names[name]; l != nil {
		l.touched = true
		l.disturb++
	}
}

// heals says that what a fault did to a pod is not over with its round, or, with -1,
// that it is now.
func (j *judge) heals(uid string, by int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lifeLocked(uid).healing += by
}

// deleting says that the API is about to be asked to delete the pod of that name.
func (j *judge) deleting(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if l := j.names[name]; l != nil {
		l.asked = true
	}
}

// settled says that all pods have recovered.
func (j *judge) settled() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range j.pods {
		l.touched = false
	}
}

// named returns what the API says of the newest pod of that name; nil: nothing, or
// that it is gone.
func (j *judge) named(name string) *v1.Pod {
	j.mu.Lock()
	defer j.mu.Unlock()
	if l := j.names[name]; l != nil && !l.gone {
		return l.last
	}
	return nil
}

// known reports whether the API has a pod of that UID.
func (j *judge) known(uid string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	l := j.pods[uid]
	return l != nil && l.last != nil && !l.gone
}

// there are the UIDs of all pods that the API has.
func (j *judge) there() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var uids []string
	for uid, l := range j.pods {
		if l.last != nil && !l.gone {
			uids = append(uids, uid)
		}
	}
	return uids
}

// was returns the name of a pod, or its UID if it has none.
func (j *judge) was(uid string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if l := j.pods[uid]; l != nil && l.name != "" {
		return l.name
	}
	return uid
}

// count is a word on how many pods there are, by phase.
func (j *judge) count() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	phases := map[v1.PodPhase]int{}
	total, going := 0, 0
	for _, l := range j.pods {
		if l.last == nil || l.gone {
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
