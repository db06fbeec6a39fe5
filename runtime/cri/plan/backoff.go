package plan

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// Delays tells how long a container that exits again and again is kept waiting.
// [Compute] asks it; whoever carries plans out tells it of starts, in
// its own way. A [Backoff] is one.
type Delays interface {
	// Peek returns the delay that follows the exit of exited[0], and when it
	// ends if that is after now (else the zero time). exited are the instances
	// of c that have exited, newest first; there is at least one. Their restart
	// counts are relative to Input.First. It is called from the goroutine of Compute, changes nothing, and between two plans of
	// the same facts its answers are the same.
	Peek(pod *v1.Pod, c *v1.Container, exited []*runtime.ContainerStatus, now time.Time) (delay time.Duration, until time.Time)
}

// A Backoff is the table of crash delays of the containers of a node (rt-88 …
// rt-97). [Compute] reads it, whoever carries plans out tells it of starts. All
// methods may be called from many goroutines, and on a nil Backoff, which delays
// nothing.
//
// Delays are measured from the end of the last instance and have no jitter:
// the start is due at that very time (lq-9). An instance that is stopped to be
// replaced has not ended when its replacement is planned, so that it is the exit
// before that counts (rt-97).
//
// The table is a memory, not a record: what it does not know, because the
// agent was started anew, it derives from the instances the runtime holds
// (lq-29), unless it is told not to. [Backoff.Export] makes a record of it.
type Backoff struct {
	cfg BackoffConfig

	mu   sync.Mutex
	pods map[types.UID]map[string]crashes // guarded by mu; inner key: container name, "" for all of the pod
}

// crashes is what is known of one container.
type crashes struct {
	key     string        // what it was when this was noted (rt-89); "" if nothing was but forgiven
	delay   time.Duration // that follows the exit of the instance last started
	started time.Time     // when that one was started

	// forgiven is when its past was last forgiven: what was started before
	// counts for nothing.
	forgiven time.Time
}

// NewBackoff returns an empty table. A negative duration and a factor below 1
// are errors.
func NewBackoff(cfg BackoffConfig) (*Backoff, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.fill(&BackoffConfig{Initial: 10 * time.Second, Max: 300 * time.Second, Reset: 600 * time.Second, Factor: 2})
	return &Backoff{cfg: cfg, pods: make(map[types.UID]map[string]crashes)}, nil
}

// Peek implements [Delays].
func (b *Backoff) Peek(pod *v1.Pod, c *v1.Container, exited []*runtime.ContainerStatus, now time.Time) (delay time.Duration, until time.Time) {
	if b == nil || len(exited) == 0 {
		return 0, time.Time{}
	}
	p := b.policy(pod, c)
	last := exited[0]
	b.mu.Lock()
	known, ok := b.pods[pod.UID][c.Name]
	forgiven := b.forgiven(pod.UID, c.Name)
	b.mu.Unlock()
	switch {
	case p.spares(last) || before(last, forgiven):
		return 0, time.Time{}
	case !ok || known.key == "":
		if p.Forgetful {
			return 0, time.Time{}
		}
		known = p.derive(c, exited, forgiven)
	case known.key != key(pod, c):
		return 0, time.Time{} // another image or other resources: it may work now
	}
	if known.delay == 0 || last.FinishedAt.Sub(known.started) > p.Reset { // rt-92
		return 0, time.Time{}
	}
	known.delay = min(known.delay, p.Max) // it may be from a table of other measures
	until = last.FinishedAt.Add(known.delay)
	if wait := until.Sub(now); wait <= 0 || wait > 2*known.delay {
		// Over; or it ended in the future: the clock was set back since, and
		// waiting for it to catch up could take for ever.
		until = time.Time{}
	}
	return known.delay, until
}

// Started notes that the start s of a container of pod was made at the given
// time: a new instance of it was created, whether or not that went on to run.
// Its exit will be followed by the next delay (rt-91). Telling twice of one
// start is harmless, and resuming an instance is not a start.
func (b *Backoff) Started(pod *v1.Pod, s Start, at time.Time) {
	if b == nil || s.Resume != "" || s.Container == nil {
		return
	}
	p := b.policy(pod, s.Container)
	entry := crashes{key: key(pod, s.Container), started: at}
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.pods[pod.UID][s.Name]
	entry.forgiven = known.forgiven
	switch {
	case s.Last == nil && known.key == entry.key:
		entry.delay = known.delay // nothing exited, nothing to punish
	case s.Last != nil && !p.spares(s.Last):
		entry.delay = p.after(s.Delay)
	}
	b.put(pod.UID, s.Name, entry)
}

// Reset forgives the named container of a pod, or all of its containers if the
// name is "", what it has been up to until now: the next exit of what runs, or
// has run, is followed by no delay, and those after it as if they were the
// first.
func (b *Backoff) Reset(uid types.UID, container string, now time.Time) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.pods[uid][container]
	known.forgiven = now
	b.put(uid, container, known)
}

// Forget drops what is known of the pod's containers. Call it when the pod is
// gone; for a pod that lives on, the delays are then derived.
func (b *Backoff) Forget(uid types.UID) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pods, uid)
}

// ForgetGone drops what is known of the pods that gone picks.
func (b *Backoff) ForgetGone(gone func(types.UID) bool) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.pods, func(uid types.UID, _ map[string]crashes) bool { return gone(uid) })
}

// forgiven returns when the container was last forgiven, by name or with its
// pod. mu is held.
func (b *Backoff) forgiven(uid types.UID, container string) time.Time {
	at := b.pods[uid][container].forgiven
	if all := b.pods[uid][""].forgiven; all.After(at) {
		at = all
	}
	return at
}

// put sets an entry. mu is held.
func (b *Backoff) put(uid types.UID, container string, entry crashes) {
	if b.pods[uid] == nil {
		b.pods[uid] = make(map[string]crashes)
	}
	b.pods[uid][container] = entry
}

// before reports whether inst was started before it was forgiven; zero is never.
func before(inst *runtime.ContainerStatus, forgiven time.Time) bool {
	return !forgiven.IsZero() && !startOf(inst).After(forgiven)
}

// startOf returns when the start of inst was made.
func startOf(inst *runtime.ContainerStatus) time.Time {
	if inst.CreatedAt.IsZero() {
		return inst.StartedAt
	}
	return inst.CreatedAt
}

// key returns what must stay the same for delays to go on: the pod, and the
// container's name, image and resources (rt-89).
func key(pod *v1.Pod, c *v1.Container) string {
	h := fnv.New64a()
	h.Write([]byte(strings.Join([]string{
		pod.Name, pod.Namespace, string(pod.UID), c.Name, c.Image, resources(&c.Resources),
	}, "/")))
	return strconv.FormatUint(h.Sum64(), 16)
}

// resources returns the requirements as text: equal ones give equal text.
func resources(r *v1.ResourceRequirements) string {
	var s strings.Builder
	for _, list := range []v1.ResourceList{r.Limits, r.Requests} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			q := list[name]
			fmt.Fprintf(&s, "%s=%s,", name, q.String())
		}
		s.WriteByte(';')
	}
	for _, claim := range r.Claims {
		fmt.Fprintf(&s, "%s/%s,", claim.Name, claim.Request)
	}
	return s.String()
}
