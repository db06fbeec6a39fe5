package pleg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Config configures a [Generator].
type Config struct {
	// Runtime is the runtime to list. Required. If it is also a [runtime.Watcher], its
	// events let changes be detected at once instead of within a Period.
	Runtime runtime.Lister

	// Handle is called for every change, one event at a time, on the goroutine of Run
	// or Relist. While it blocks no other event is delivered, and changes are combined
	// to fewer events; lists, inspections and the cache continue. Run does not return
	// before it has returned. Nil: events are discarded.
	Handle func(Event)

	// Period is the time from the end of a list to the start of the next while events
	// are not trusted: without a Watcher, while its stream is broken, and for a while
	// after a missed change. It is also the delay after a failed inspection. Zero: 1s. A
	// longer period detects changes later; a shorter one costs more lists.
	Period time.Duration

	// MaxPeriod is the period while an event stream is open and announces every change;
	// a change is followed by a list after 30 s or a Period, whichever is longer. Zero:
	// 5m, or Period if that is longer. A longer one detects the first change whose
	// event is lost later; a shorter one costs more lists. If equal to Period, events
	// do not affect the period.
	MaxPeriod time.Duration

	// Threshold is the age of the last successful list above which Healthy returns an
	// error, and the timeout of a list. If the period is longer than Period, the
	// difference is added to the allowed age. Zero: 3m, or Period if that is longer. It
	// must not be less than Period. If it is too short, one slow list makes Healthy
	// fail.
	Threshold time.Duration

	// InspectTimeout is the timeout of the inspection of one pod, which is retried after
	// a Period. Zero: 10s. If it is too short, statuses of a busy runtime become stale.
	InspectTimeout time.Duration

	// Parallel is the maximum number of concurrent inspections. Zero: 32. Fewer delay
	// changes of many pods at once: 1,000 pods of 50 ms take 1.6 s with 32, 6.3 s with
	// 8. More load a runtime that has other callers. With 1, a pod that hangs blocks
	// the others for InspectTimeout.
	Parallel int

	// Logger is used for failures that are retried. If nil, logs are discarded.
	Logger *slog.Logger

	// Hooks are called for observation.
	Hooks Hooks
}

// A Generator lists and inspects the pods of a runtime, caches their statuses and reports
// changes. [New] constructs it. Safe for concurrent use.
type Generator struct {
	cfg Config
	ran runonce.Guard
	log *slog.Logger

	// running is set while Run or Relist runs.
	running atomic.Bool

	// Channels of capacity 1, signaled when a pod is due for inspection, and when the plan
	// has changed.
	dueSignal, planSignal chan struct{}

	// mu guards the fields below, all records and all followers. It is not held during calls
	// of the runtime, of handlers and of hooks.
	mu        sync.Mutex
	pods      map[types.UID]*record
	followers []*follower // the first is Config.Handle's

	reads    uint64        // number of reads that have begun
	listed   read          // the last successful list; zero if there was none
	listing  read          // the list in progress; zero if none is
	failed   read          // the last failed list; zero if none failed
	listErr  error         // of the last list
	listDone chan struct{} // closed when a list ends; nil while there are no waiters

	queues     queues     // pods that are due for inspection
	plan       plan       // of lists and of the work between them
	lastRelist time.Time  // start of the last list, successful or not
	confidence confidence // in the events of the runtime
	watchErr   error      // why the last event stream ended
	reopen     func()     // closes the event stream; nil while there is none

	// unannounced contains the changes that no event has announced yet, with the times at
	// which they were found. They are counted as missed at confidence.missedAt.
	unannounced map[types.UID]time.Time

	// Since the last RelistInfo.
	inspected, delivered, missed int
}

// New returns a Generator for cfg, or an error that names the invalid field. It does not call
// the runtime.
func New(cfg Config) (*Generator, error) {
	if cfg.Runtime == nil {
		return nil, errors.New("pleg: Config.Runtime is nil")
	}
	if err := compose.Check(cfg.Runtime, reflect.TypeFor[runtime.Watcher]()); err != nil {
		return nil, fmt.Errorf("pleg: Config.Runtime: %w", err)
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
		cfg:         cfg,
		log:         cfg.Logger,
		dueSignal:   make(chan struct{}, 1),
		planSignal:  make(chan struct{}, 1),
		pods:        make(map[types.UID]*record),
		followers:   []*follower{newFollower()},
		queues:      newQueues(cfg.Parallel),
		confidence:  newConfidence(cfg.Period, cfg.MaxPeriod),
		unannounced: make(map[types.UID]time.Time),
	}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	return g, nil
}

// errRunning is returned if Run and Relist, or two Relists, overlap.
var errRunning = errors.New("pleg: a Run or Relist of this Generator is running")

// Run relists at once and then periodically, serves requests and events of the runtime, and
// delivers events, until ctx is done; then it returns nil, after its goroutines have returned.
// Events that are not delivered by then are delivered by Relist. It returns an error if it is
// called a second time, or while Relist runs.
//
// A failed list is logged and retried after a Period. Healthy returns an error when no list has
// succeeded for too long.
func (g *Generator) Run(ctx context.Context) error {
	if err := g.ran.Enter("pleg: Generator"); err != nil {
		return err
	}
	if !g.running.CompareAndSwap(false, true) {
		return errRunning
	}
	defer g.running.Store(false)

	g.mu.Lock()
	g.plan.next = time.Now()
	g.confidence = newConfidence(g.cfg.Period, g.cfg.MaxPeriod) // changes may have been missed
	clear(g.unannounced)
	g.mu.Unlock()

	var wg sync.WaitGroup
	defer wg.Wait() // before running is reset
	wg.Go(func() { g.listLoop(ctx) })
	wg.Go(func() { g.inspectLoop(ctx, false) })
	if w, ok := compose.As[runtime.Watcher](g.cfg.Runtime); ok {
		wg.Go(func() { g.watchLoop(ctx, w) })
	}

	// Events are delivered on this goroutine and the runtime is read on others, so that a
	// slow Handle affects neither freshness nor health.
	g.follow(ctx, g.ownFollower(), g.callHandle)
	return nil
}

// beginReadLocked numbers a read of the runtime, which must begin after it.
func (g *Generator) beginReadLocked() read {
	g.reads++
	return read{n: g.reads, at: time.Now()}
}

// recordLocked returns the record of uid and creates it if necessary. A pod without a record was not in
// the last list.
func (g *Generator) recordLocked(uid types.UID) *record {
	r := g.pods[uid]
	if r == nil {
		r = &record{uid: uid, readBy: g.listed, confirmedBy: g.listed}
		g.pods[uid] = r
	}
	return r
}

// settleLocked applies a change of r: it queues an inspection, marks events as pending, wakes waiters,
// and forgets r if possible.
func (g *Generator) settleLocked(r *record) {
	if r.due() {
		if until, pinned := r.pinned(); pinned {
			g.wakeLocked(until)
		} else if g.queues.push(r) {
			signal(g.dueSignal)
		}
	}
	for _, f := range g.followers {
		f.update(r)
	}
	r.syncPending, r.cause = false, time.Time{}
	r.wakeLocked()
	g.forgetLocked(r)
}

// forgetLocked deletes a record that is no longer needed. While a list is in progress it is kept: the
// list may have begun before the pod was removed, and would add it again.
func (g *Generator) forgetLocked(r *record) {
	if g.listing.n == 0 && r.forgettable() {
		delete(g.pods, r.uid)
	}
}

// signal sends to a channel of capacity 1, unless it is full.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
