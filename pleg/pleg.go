package pleg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Config says what a Generator watches and how closely.
type Config struct {
	// Runtime is what is looked at. Required. If it is a [runtime.Watcher]
	// too, its hints make changes seen at once instead of within a Period.
	Runtime runtime.Lister

	// Handle is told every change, one event at a time, on the goroutine of
	// Run or Relist. While it blocks no other event is delivered, and changes
	// add up to fewer events; lists, inspections and the cache go on. Run
	// does not return before it has returned. Nil: nobody is told.
	Handle func(Event)

	// Period from the end of a list to the start of the next (pleg-10), while
	// hints cannot be relied on: that is without a Watcher, while its stream
	// is broken, and after it missed a change, until it has announced others.
	// Zero: 1s. Longer finds
	// changes later; shorter costs a list each time. It is also what a late
	// hint is given, and the time between two tries to inspect a pod.
	Period time.Duration

	// MaxPeriod is what the period grows to while hints announce every
	// change: it doubles with each list that found nothing they had not
	// announced, and is Period again once they did not announce something.
	// Zero: 5m, or Period if that is longer. Longer means that a change whose
	// hint is the first to be lost is found later; shorter costs lists.
	// Period: it never grows.
	MaxPeriod time.Duration

	// Threshold is the age of the last good list above which Healthy fails,
	// and the time after which a list that hangs is given up. What a period
	// is longer than Period comes on top of the age. Zero: 3m, or Period if
	// that is longer. Not below Period. Too short and one slow list is
	// trouble; too long and trouble is seen late.
	Threshold time.Duration

	// InspectTimeout ends the inspection of one pod, which is tried again
	// after the next list. Zero: 10s. Too short and a busy runtime's pods go
	// stale.
	InspectTimeout time.Duration

	// Parallel is how many pods are inspected at a time. Zero: 32. Fewer make
	// changes of many pods at once be seen later where the runtime takes its
	// time: 1,000 pods of 50 ms take 1.6 s with 32, 6.3 s with 8. More are
	// calls to a runtime that has other callers. With 1, a pod that hangs
	// holds up the others for InspectTimeout.
	Parallel int

	// Logger gets what failed and is tried again. Nil: discards.
	Logger *slog.Logger

	// Hooks are for metrics.
	Hooks Hooks
}

// A Generator compares looks at a runtime, keeps what it saw, and tells what
// changed. New makes one.
type Generator struct {
	cfg Config
	ran runonce.Guard
	log *slog.Logger

	// driven is true while a Run or Relist runs.
	driven atomic.Bool

	// Edges, of capacity 1: a pod is due for inspection; the plan has changed.
	dueEdge, planEdge chan struct{}

	// mu guards the fields below, all records and what followers know. It is
	// never held during a call to the runtime, to a handler or to a hook.
	mu        sync.Mutex
	pods      map[types.UID]*record
	followers []*follower // the first is Config.Handle's

	looks   uint64        // how many looks have begun
	listed  look          // the newest list taken in; zero if there was none
	listing look          // the list that is under way; zero if none is
	failed  look          // the newest list that failed; zero if none did
	listErr error         // of the newest list that ended
	ends    chan struct{} // closed when a list ends; nil while nobody waits

	queues   queues    // pods due for inspection
	plan     plan      // of lists, and of what is done between them
	relists  time.Time // start of the newest relist, good or not
	trust    trust     // in hints
	hintsErr error     // why the last stream of hints ended
	reopen   func()    // ends the stream of hints; nil while there is none

	// suspects are changes that no hint announced, and when they were found.
	// They stay for a Period.
	suspects map[types.UID]time.Time

	// Since the last RelistInfo.
	inspected, delivered, unhinted int
}

// New returns a Generator for cfg. It looks at nothing until Run or Relist is
// called. An error names the field that is wrong.
func New(cfg Config) (*Generator, error) {
	if cfg.Runtime == nil {
		return nil, errors.New("pleg: Config.Runtime is nil")
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		std   time.Duration
	}{
		{"Period", &cfg.Period, time.Second},
		{"MaxPeriod", &cfg.MaxPeriod, max(5*time.Minute, cfg.Period)},
		{"Threshold", &cfg.Threshold, max(3*time.Minute, cfg.Period)},
		{"InspectTimeout", &cfg.InspectTimeout, 10 * time.Second},
	} {
		if *d.value < 0 {
			return nil, fmt.Errorf("pleg: Config.%s is negative: %v", d.name, *d.value)
		}
		if *d.value == 0 {
			*d.value = d.std
		}
	}
	if cfg.Threshold < cfg.Period {
		return nil, fmt.Errorf("pleg: Config.Threshold %v is below Config.Period %v", cfg.Threshold, cfg.Period)
	}
	if cfg.MaxPeriod < cfg.Period {
		return nil, fmt.Errorf("pleg: Config.MaxPeriod %v is below Config.Period %v", cfg.MaxPeriod, cfg.Period)
	}
	if cfg.Parallel < 0 {
		return nil, fmt.Errorf("pleg: Config.Parallel is negative: %d", cfg.Parallel)
	}
	if cfg.Parallel == 0 {
		cfg.Parallel = 32
	}
	if cfg.Handle == nil {
		cfg.Handle = func(Event) {}
	}
	g := &Generator{
		cfg:       cfg,
		log:       cfg.Logger,
		dueEdge:   make(chan struct{}, 1),
		planEdge:  make(chan struct{}, 1),
		pods:      make(map[types.UID]*record),
		followers: []*follower{newFollower()},
		queues:    newQueues(cfg.Parallel),
		trust:     newTrust(cfg.Period, cfg.MaxPeriod),
		suspects:  make(map[types.UID]time.Time),
	}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	return g, nil
}

// errDriven is returned if Run and Relist, or two Relists, overlap.
var errDriven = errors.New("pleg: a Run or Relist of this Generator is running")

// Run relists at once and then periodically, serves requests and hints, and
// delivers events, until ctx is done; then it returns nil, after its goroutines
// have returned. Events that are not delivered by then are left for Relist. It must not be called while Relist runs, which is an error, and
// a second call returns an error.
//
// A failed list is logged and tried again after a Period; Healthy tells when
// that has gone on for too long.
func (g *Generator) Run(ctx context.Context) error {
	if err := g.ran.Enter("pleg: Generator"); err != nil {
		return err
	}
	if !g.driven.CompareAndSwap(false, true) {
		return errDriven
	}
	defer g.driven.Store(false)

	g.mu.Lock()
	g.plan.next = time.Now()
	g.trust = newTrust(g.cfg.Period, g.cfg.MaxPeriod) // who knows what was missed
	clear(g.suspects)
	g.mu.Unlock()

	var wg sync.WaitGroup
	defer wg.Wait() // before driven is given back
	wg.Go(func() { g.listLoop(ctx) })
	wg.Go(func() { g.inspectLoop(ctx, false) })
	if w, ok := runtime.As[runtime.Watcher](g.cfg.Runtime); ok {
		wg.Go(func() { g.watchLoop(ctx, w) })
	}

	// Delivery is here, and looking elsewhere, so that a slow Handle costs
	// neither freshness nor health.
	g.follow(ctx, g.own(), g.tell)
	return nil
}

// lookLocked begins a look: the read must come after it.
func (g *Generator) lookLocked() look {
	g.looks++
	return look{n: g.looks, at: time.Now()}
}

// recordLocked returns the record of uid, and makes it if there is none. That
// there was none means that the last list saw nothing of the pod.
func (g *Generator) recordLocked(uid types.UID) *record {
	r := g.pods[uid]
	if r == nil {
		r = &record{uid: uid, seen: g.listed, good: g.listed}
		g.pods[uid] = r
	}
	return r
}

// settleLocked does what follows from a change of r: an inspection, a delivery,
// the end of somebody's wait; and forgets r if nothing depends on it.
func (g *Generator) settleLocked(r *record) {
	if r.due() {
		if until, held := r.rests(); held {
			g.wakeLocked(until)
		} else if g.queues.push(r) {
			edge(g.dueEdge)
		}
	}
	for _, f := range g.followers {
		f.settle(r)
	}
	r.synced, r.led = false, time.Time{}
	r.wakeLocked()
	g.forgetLocked(r)
}

// forgetLocked drops r if that loses nothing. While a list is under way it
// stays: that list may have begun before the pod went, and would bring it back.
func (g *Generator) forgetLocked(r *record) {
	if g.listing.n == 0 && r.forgettable() {
		delete(g.pods, r.uid)
	}
}

// edge makes the receiver of c look again, once for any number of calls.
func edge(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
