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

// BackoffConfig says how long a container that exits again and again is kept
// waiting.
type BackoffConfig struct {
	// Initial is the first delay. The first restart is immediate; the second
	// waits for Initial, each further one twice as long as the one before.
	// Zero: 10 s.
	Initial time.Duration

	// Max is the longest delay. Zero: 300 s. If below Initial, Initial is
	// lowered to it (rt-93). Long delays spare the node; short ones bring a
	// container back sooner after what it needs has come back.
	Max time.Duration

	// Reset is the run after which a container counts as healthy, so that the
	// sequence begins again when it exits. Zero: 600 s.
	Reset time.Duration
}

// A Backoff is the table of crash delays of the containers of a node (rt-88 …
// rt-97). [Compute] reads it, whoever carries plans out tells it of starts. All
// methods may be called from many goroutines, and on a nil Backoff, which delays
// nothing.
//
// Delays are measured from the end of the last instance and have no jitter:
// the start is due at that very time (lq-9). The exit code plays no part
// (rt-95).
//
// The table is a memory, not a record: what it does not know, because the
// agent was started anew, it derives from the instances the runtime holds
// (lq-29).
type Backoff struct {
	initial, max, reset time.Duration

	mu   sync.Mutex
	pods map[types.UID]map[string]crashes // guarded by mu; inner key: container name
}

// crashes is what is known of one container.
type crashes struct {
	key     string        // what it was when this was noted (rt-89)
	delay   time.Duration // that follows the exit of the instance last started
	started time.Time     // when that one was started
}

// NewBackoff returns an empty table. A negative duration is an error.
func NewBackoff(cfg BackoffConfig) (*Backoff, error) {
	for _, f := range []struct {
		name  string
		value *time.Duration
		zero  time.Duration
	}{
		{"Initial", &cfg.Initial, 10 * time.Second},
		{"Max", &cfg.Max, 300 * time.Second},
		{"Reset", &cfg.Reset, 600 * time.Second},
	} {
		if *f.value < 0 {
			return nil, fmt.Errorf("plan: BackoffConfig.%s is negative: %v", f.name, *f.value)
		}
		if *f.value == 0 {
			*f.value = f.zero
		}
	}
	return &Backoff{
		initial: min(cfg.Initial, cfg.Max),
		max:     cfg.Max,
		reset:   cfg.Reset,
		pods:    make(map[types.UID]map[string]crashes),
	}, nil
}

// Peek returns the delay that follows the exit of exited[0], and when it ends
// if that is after now (else the zero time). It changes nothing. exited are the
// instances of c that have exited, newest first; with none there is no delay.
func (b *Backoff) Peek(pod *v1.Pod, c *v1.Container, exited []*runtime.ContainerStatus, now time.Time) (delay time.Duration, until time.Time) {
	if b == nil || len(exited) == 0 {
		return 0, time.Time{}
	}
	last := exited[0]
	b.mu.Lock()
	known, ok := b.pods[pod.UID][c.Name]
	b.mu.Unlock()
	if !ok {
		known = b.derive(c, exited)
	} else if known.key != key(pod, c) {
		return 0, time.Time{} // another image or other resources: it may work now
	}
	if known.delay == 0 || last.FinishedAt.Sub(known.started) > b.reset { // rt-92
		return 0, time.Time{}
	}
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
	if b == nil || s.Resume != "" {
		return
	}
	entry := crashes{key: key(pod, s.Container), started: at}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.Last != nil {
		entry.delay = b.after(s.Delay)
	} else if known, ok := b.pods[pod.UID][s.Name]; ok && known.key == entry.key {
		entry.delay = known.delay // nothing exited, nothing to punish
	}
	if b.pods[pod.UID] == nil {
		b.pods[pod.UID] = make(map[string]crashes)
	}
	b.pods[pod.UID][s.Name] = entry
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

// after returns the delay that comes after d.
func (b *Backoff) after(d time.Duration) time.Duration {
	switch {
	case d == 0:
		return b.initial
	case d > b.max/2:
		return b.max
	default:
		return 2 * d
	}
}

// derive works out what the table would say had it seen every start: as many
// delays as there were restarts, since the last instance still held that ran
// long enough to reset the sequence, or was made from another spec. Restarts
// that nothing is left of are taken for crashes, so the result errs on the long
// side.
func (b *Backoff) derive(c *v1.Container, exited []*runtime.ContainerStatus) crashes {
	last := exited[0]
	hash := Hash(c)
	restarts := last.RestartCount
	for i, inst := range exited {
		other := inst.Hash != 0 && inst.Hash != hash
		if other || i > 0 && inst.FinishedAt.Sub(startOf(inst)) > b.reset {
			restarts = last.RestartCount - inst.RestartCount
			break
		}
	}
	known := crashes{started: startOf(last)}
	for ; restarts > 0 && known.delay < b.max; restarts-- {
		known.delay = b.after(known.delay)
	}
	return known
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
