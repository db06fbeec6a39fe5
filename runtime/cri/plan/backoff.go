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

// Delays supplies the delays of crashing containers to [Compute]. [Backoff] implements it.
type Delays interface {
	// Peek returns the delay after the exit of exited[0], and its end if that is after
	// now, else the zero time. exited are the exited instances of c, at least one, newest
	// first; their restart counts are relative to History.FirstRestartCounts. It is called
	// on the goroutine of Compute, must not change anything, and must return the same for
	// the same arguments until the next start of the container.
	Peek(pod *v1.Pod, c *v1.Container, exited []*runtime.ContainerStatus, now time.Time) (delay time.Duration, until time.Time)
}

// A Backoff is the table of crash delays of the containers of a node (rules rt-88 to
// rt-97). [Compute] reads it; the caller of Compute reports starts with Started. Safe for
// concurrent use. A nil Backoff delays nothing.
//
// Delays are measured from the end of the last instance and have no jitter. An instance
// that is stopped to be replaced has not ended when its replacement is planned, so the exit
// before it counts (rule rt-97).
//
// After a restart of the agent the table is empty; delays are then derived from the
// instances in the runtime, unless BackoffConfig.Forgetful is set.
type Backoff struct {
	cfg BackoffConfig

	mu   sync.Mutex
	pods map[types.UID]map[string]backoffState // guarded by mu; inner key: container name, "" for all of the pod
}

// backoffState is the state of one container.
type backoffState struct {
	key     string        // of the spec at the last start (rule rt-89); "" if only resetAt is set
	delay   time.Duration // after the exit of the instance last started
	started time.Time     // of that instance
	resetAt time.Time     // instances started before are ignored
}

// NewBackoff returns an empty table. It returns an error if a duration is negative or the
// factor is below 1.
func NewBackoff(cfg BackoffConfig) (*Backoff, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.fill(&BackoffConfig{Initial: 10 * time.Second, Max: 300 * time.Second, Reset: 600 * time.Second, Factor: 2})
	return &Backoff{cfg: cfg, pods: make(map[types.UID]map[string]backoffState)}, nil
}

// Peek implements [Delays].
func (b *Backoff) Peek(pod *v1.Pod, c *v1.Container, exited []*runtime.ContainerStatus, now time.Time) (delay time.Duration, until time.Time) {
	if b == nil || len(exited) == 0 {
		return 0, time.Time{}
	}
	p := b.policy(pod, c)
	last := exited[0]
	b.mu.Lock()
	entry, ok := b.pods[pod.UID][c.Name]
	resetAt := b.resetAt(pod.UID, c.Name)
	b.mu.Unlock()
	switch {
	case p.isExempt(last) || startedBefore(last, resetAt):
		return 0, time.Time{}
	case !ok || entry.key == "":
		if p.Forgetful {
			return 0, time.Time{}
		}
		entry = p.derive(c, exited, resetAt)
	case entry.key != key(pod, c):
		return 0, time.Time{} // the image or resources changed
	}
	if entry.delay == 0 || last.FinishedAt.Sub(entry.started) > p.Reset {
		return 0, time.Time{}
	}
	entry.delay = min(entry.delay, p.Max) // ForContainer may have lowered Max
	until = last.FinishedAt.Add(entry.delay)
	if wait := until.Sub(now); wait <= 0 || wait > 2*entry.delay {
		// It has passed, or the instance ended in the future: the clock was set back
		// since, and the back-off could last arbitrarily long.
		until = time.Time{}
	}
	return entry.delay, until
}

// Started reports that the start s of a container of pod was carried out at the given
// time: an instance was created, whether or not it runs. Its exit is followed by the next
// delay (rule rt-91). Repeated calls for a start have no effect, and neither have calls for
// a start with Resume set.
func (b *Backoff) Started(pod *v1.Pod, s Start, at time.Time) {
	if b == nil || s.Resume != "" || s.Container == nil {
		return
	}
	p := b.policy(pod, s.Container)
	entry := backoffState{key: key(pod, s.Container), started: at}
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.pods[pod.UID][s.Name]
	entry.resetAt = old.resetAt
	switch {
	case s.Last == nil && old.key == entry.key:
		entry.delay = old.delay // no instance has exited
	case s.Last != nil && !p.isExempt(s.Last):
		entry.delay = p.after(s.Delay)
	}
	b.put(pod.UID, s.Name, entry)
}

// Reset ends the back-off of the named container of a pod, or of all its containers if the
// name is "". The next exit of an instance started before now is followed by no delay, and
// the sequence of delays begins again.
func (b *Backoff) Reset(uid types.UID, container string, now time.Time) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	entry := b.pods[uid][container]
	entry.resetAt = now
	b.put(uid, container, entry)
}

// Forget deletes the entries of the pod's containers. It should be called when the pod is
// deleted; the delays of an existing pod are derived afterwards.
func (b *Backoff) Forget(uid types.UID) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pods, uid)
}

// Retain deletes the entries of the pods for which keep returns false.
func (b *Backoff) Retain(keep func(types.UID) bool) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.pods, func(uid types.UID, _ map[string]backoffState) bool { return !keep(uid) })
}

// resetAt returns the time of the last reset of the container or its pod. The caller must
// hold mu.
func (b *Backoff) resetAt(uid types.UID, container string) time.Time {
	at := b.pods[uid][container].resetAt
	if all := b.pods[uid][""].resetAt; all.After(at) {
		at = all
	}
	return at
}

// put sets an entry. The caller must hold mu.
func (b *Backoff) put(uid types.UID, container string, entry backoffState) {
	if b.pods[uid] == nil {
		b.pods[uid] = make(map[string]backoffState)
	}
	b.pods[uid][container] = entry
}

// startedBefore reports whether inst was started before the reset, if there was one.
func startedBefore(inst *runtime.ContainerStatus, resetAt time.Time) bool {
	return !resetAt.IsZero() && !startOf(inst).After(resetAt)
}

// startOf returns the time at which inst was created, or started if that is unknown.
func startOf(inst *runtime.ContainerStatus) time.Time {
	if inst.CreatedAt.IsZero() {
		return inst.StartedAt
	}
	return inst.CreatedAt
}

// key returns a hash of the properties whose change ends a back-off: the pod, and the
// container's name, image and resources (rule rt-89).
func key(pod *v1.Pod, c *v1.Container) string {
	h := fnv.New64a()
	h.Write([]byte(strings.Join([]string{
		pod.Name, pod.Namespace, string(pod.UID), c.Name, c.Image, resources(&c.Resources),
	}, "/")))
	return strconv.FormatUint(h.Sum64(), 16)
}

// resources returns a canonical text of the requirements.
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
