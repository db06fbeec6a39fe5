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

	// Period from the end of a list to the start of the next (pleg-10). Zero:
	// 1s. Longer finds changes later if the Runtime gives no hints; shorter
	// costs a list each time.
	Period time.Duration

	// Threshold is the age of the last good list above which Healthy fails,
	// and the time after which a list that hangs is given up. Zero: 3m. Not
	// below Period.
	Threshold time.Duration

	// InspectTimeout ends the inspection of one pod, which is tried again
	// after the next list. Zero: 10s. Too short and a busy runtime's pods go
	// stale.
	InspectTimeout time.Duration

	// Parallel is how many pods are inspected at a time. Zero: 8. With 1, a
	// pod that hangs holds up the others for InspectTimeout.
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
	log *slog.Logger

	// driven is true while a Run or Relist runs.
	driven atomic.Bool

	// Edges, of capacity 1: a pod is due for inspection; there is news.
	dueEdge, newsEdge chan struct{}

	// mu guards the fields below and all records. It is never held during a
	// call to the runtime, to Handle or to a hook.
	mu   sync.Mutex
	pods map[types.UID]*record

	looks  uint64 // how many looks have begun
	listed look   // the newest list taken in; zero if there was none

	queues  queues      // pods due for inspection
	news    []types.UID // pods whose records have news, each once
	relists time.Time   // start of the newest relist, good or not

	// Since the last RelistInfo.
	inspected, delivered int
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
	if cfg.Parallel < 0 {
		return nil, fmt.Errorf("pleg: Config.Parallel is negative: %d", cfg.Parallel)
	}
	if cfg.Parallel == 0 {
		cfg.Parallel = 8
	}
	if cfg.Handle == nil {
		cfg.Handle = func(Event) {}
	}
	g := &Generator{
		cfg:      cfg,
		log:      cfg.Logger,
		dueEdge:  make(chan struct{}, 1),
		newsEdge: make(chan struct{}, 1),
		pods:     make(map[types.UID]*record),
		queues:   newQueues(cfg.Parallel),
	}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	return g, nil
}

// errDriven refuses the second of two at a time.
var errDriven = errors.New("pleg: a Run or Relist of this Generator is running")

// Run relists at once and then again and again, serves requests and hints, and
// delivers events, until ctx ends; then it returns nil, after its goroutines
// have returned. What it had not yet delivered, a later Run delivers. An error
// means that another Run or Relist was running.
//
// A failed list is logged and tried again after a Period; Healthy tells when
// that has gone on for too long.
func (g *Generator) Run(ctx context.Context) error {
	if !g.driven.CompareAndSwap(false, true) {
		return errDriven
	}
	defer g.driven.Store(false)

	var wg sync.WaitGroup
	defer wg.Wait() // before driven is given back
	wg.Go(func() { g.listLoop(ctx) })
	wg.Go(func() { g.inspectLoop(ctx, false) })
	if w, ok := g.cfg.Runtime.(runtime.Watcher); ok {
		wg.Go(func() { g.watchLoop(ctx, w) })
	}

	// Delivery is here, and looking elsewhere, so that a slow Handle costs
	// neither freshness nor health.
	for {
		g.deliver(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-g.newsEdge:
		}
	}
}

// listLoop lists at once, and then a Period after each list has ended
// (pleg-10).
func (g *Generator) listLoop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		info := g.list(ctx)
		if ctx.Err() != nil {
			return
		}
		g.report(info)
		if info.Err != nil && !failing {
			g.log.Warn("cannot list pods, trying again", "err", info.Err)
		}
		failing = info.Err != nil
		timer.Reset(g.cfg.Period)
	}
}

// deliver calls Handle with the news there is, pod by pod. Told counts before
// it is told: the events of a pod that were begun are delivered to the end,
// even if ctx ends meanwhile.
func (g *Generator) deliver(ctx context.Context) {
	var events []Event
	for ctx.Err() == nil {
		g.mu.Lock()
		if len(g.news) == 0 {
			g.mu.Unlock()
			return
		}
		r := g.pods[g.news[0]]
		g.news = g.news[1:]
		r.ready = false
		events = r.news(events[:0])
		g.delivered += len(events)
		g.mu.Unlock()

		for _, e := range events {
			g.cfg.Handle(e)
		}
	}
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
		r = &record{uid: uid, seen: g.listed}
		g.pods[uid] = r
	}
	return r
}

// settleLocked does what follows from a change of r: an inspection, a delivery,
// the end of somebody's wait.
func (g *Generator) settleLocked(r *record) {
	if r.due() && g.queues.push(r) {
		edge(g.dueEdge)
	}
	if !r.ready && r.hasNews() {
		r.ready = true
		g.news = append(g.news, r.uid)
		edge(g.newsEdge)
	}
	r.wakeLocked()
}

// edge makes the receiver of c look again, once for any number of calls.
func edge(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
