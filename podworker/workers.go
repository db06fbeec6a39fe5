package podworker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/runtime"
)

// Workers run one worker for each pod UID. Update, Remove, Sync and Kill report changes; they
// do not block. The Handler is called while Run runs. A pod that is not due has no goroutine.
// Safe for concurrent use.
type Workers struct {
	cfg    Config
	table  *Table
	ran    runonce.Guard
	delays delays

	// Channels of capacity 1; senders do not wait.
	ready    chan struct{} // a pod is due and its call may begin
	finished chan struct{} // a pod has finished: Loop calls Settle

	// mu guards the fields below.
	mu      sync.Mutex
	pods    map[types.UID]*worker
	names   nameQueues
	queue   queue                  // due pods; a UID is in it at most once
	busy    int                    // calls that count towards Config.Parallel
	settled map[types.UID]struct{} // finished, or changed since then: for Loop.Settle
	ended   bool                   // Run has returned

	// restartKills has the kills of pods that were forgotten and start again; the new
	// worker terminates the pod before it starts a container (lifecycle.restart).
	restartKills map[types.UID]KillOptions

	// changedAt has worker.changedAt of pods that were forgotten: a pod that is added
	// with the same UID must not be given an older status, which may contain
	// terminated containers as running. Entries are removed after keepChangedAt.
	changedAt map[types.UID]time.Time
}

// A worker is the lifecycle of one pod with its timers and its call in progress.
type worker struct {
	lifecycle lifecycle

	uid    types.UID
	static string  // full name of a static pod until it has finished, else ""
	mirror *v1.Pod // its mirror pod; nil: none is known

	queued bool // in Workers.queue
	again  bool // became due while a call was in progress
	due    time.Time

	// The call in progress.
	running  bool
	calling  call
	observed atomic.Bool // the wait for a new status has ended
	began    time.Time
	cancel   context.CancelFunc

	timer *time.Timer // makes the pod due at next; nil: none was set yet
	next  time.Time

	added     time.Time // when the worker was created
	since     time.Time // when the state began
	requested time.Time // when the termination was requested
	called    time.Time // when the last call returned; zero: none was made
	changedAt time.Time // when the last call returned that may have changed the runtime
	met       bool      // the Handler was called
	err       error     // of the last call
	failures  int       // consecutive failed calls
	done      []chan Outcome

	victims   map[types.UID]struct{} // preempted pods that it waits for
	preemptor *worker                // the worker that waits for this one; nil: none
}

// New returns Workers for cfg, or an error if a required field is missing or a duration is
// negative. It starts nothing.
func New(cfg Config) (*Workers, error) {
	switch {
	case cfg.Handler == nil:
		return nil, errors.New("podworker: Config.Handler is nil")
	case cfg.StatusCache == nil:
		return nil, errors.New("podworker: Config.StatusCache is nil")
	case cfg.Resync < 0 || cfg.Retry < 0 || cfg.Parallel < 0:
		return nil, errors.New("podworker: negative Config.Resync, Retry or Parallel")
	}
	if err := checkHandler(cfg.Handler); err != nil {
		return nil, fmt.Errorf("podworker: Config.Handler: %w", err)
	}
	if cfg.Resync == 0 {
		cfg.Resync = time.Minute
	}
	if cfg.Retry == 0 {
		cfg.Retry = 10 * time.Second
	}
	if cfg.Slow == 0 {
		cfg.Slow = 10 * time.Second
	}
	if cfg.Jitter == nil {
		cfg.Jitter = NewJitter()
	}
	if cfg.Record == nil {
		cfg.Record = func(runtime.Event) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Table == nil {
		cfg.Table = new(Table)
	}
	w := &Workers{
		cfg:          cfg,
		table:        cfg.Table,
		delays:       delays{resync: cfg.Resync, retry: cfg.Retry, network: time.Second},
		ready:        make(chan struct{}, 1),
		finished:     make(chan struct{}, 1),
		pods:         map[types.UID]*worker{},
		names:        nameQueues{},
		restartKills: map[types.UID]KillOptions{},
		changedAt:    map[types.UID]time.Time{},
		settled:      map[types.UID]struct{}{},
	}
	if err := cfg.Table.use(w); err != nil {
		return nil, err
	}
	return w, nil
}

// Table returns the table with the states of the workers: Config.Table, or the one that New
// has constructed.
func (w *Workers) Table() *Table { return w.table }

// Run calls the Handler for due pods until ctx is done, and returns nil when the last call
// has returned. Containers keep running; the outcome of pending Kills is Abandoned. A second
// call returns an error.
func (w *Workers) Run(ctx context.Context) error {
	if err := w.ran.Enter("podworker: Workers"); err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer w.end()
	defer wg.Wait()
	for {
		for {
			d, ok := w.take(ctx)
			if !ok {
				break
			}
			wg.Go(func() {
				// The goroutine makes further calls that are due: one for each
				// call would cost more than most calls.
				for ok := true; ok; {
					d, ok = w.work(ctx, d)
				}
			})
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.ready:
		}
	}
}

// end stops the timers and reports Abandoned after the last call.
func (w *Workers) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for _, p := range w.pods {
		if p.timer != nil {
			p.timer.Stop()
		}
		p.notify(Abandoned)
	}
}

// Update takes the spec of a pod from its source. create is set if the source has added the
// pod; a pod that is terminating or has finished under the same UID then starts again.
func (w *Workers) Update(pod *v1.Pod, create bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, first := w.workerLocked(pod.UID)
	in := podUpdated{pod: pod, create: create, first: first}
	if first {
		if in.static = runtime.IsStatic(pod); in.static {
			p.static = runtime.PodFullName(pod)
			w.names.push(p.static, pod.UID)
		}
		status, err := w.cfg.StatusCache.Get(pod.UID)
		in.stopped = err == nil && !status.Running()
	}
	w.stepLocked(p, in)
	if u, ok := compose.As[Updater](w.cfg.Handler); ok && p.lifecycle.state == Syncing && p.lifecycle.pod == pod {
		u.Updated(pod) // under mu, so that updates arrive in order
	}
	if opts, ok := w.restartKills[pod.UID]; ok && first {
		delete(w.restartKills, pod.UID)
		w.stepLocked(p, killed{opts})
	}
}

// updateMirror sets the mirror pod of a static pod, nil if there is none, and makes the
// static pod due. It has no effect if the pod has no worker.
func (w *Workers) updateMirror(uid types.UID, mirror *v1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.pods[uid]; ok {
		p.mirror = mirror
		w.syncLocked(p)
	}
}

// Sync makes the pod due because something about it changed. It reports whether the pod has
// a worker.
func (w *Workers) Sync(uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.pods[uid]
	if ok {
		w.syncLocked(p)
	}
	return ok
}

func (w *Workers) syncLocked(p *worker) {
	if p.lifecycle.state == Syncing {
		w.wakeLocked(p)
	}
}

// Remove terminates a pod that no source specifies any more.
func (w *Workers) Remove(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.restartKills, uid)
	if p, ok := w.pods[uid]; ok {
		w.stepLocked(p, podRemoved{})
	}
}

// keepChangedAt is longer than any period of relists.
const keepChangedAt = 10 * time.Minute

// workerLocked returns the worker for uid and whether it was created.
func (w *Workers) workerLocked(uid types.UID) (p *worker, first bool) {
	p, ok := w.pods[uid]
	if !ok {
		now := time.Now()
		p = &worker{uid: uid, added: now, since: now, changedAt: w.changedAt[uid]}
		w.pods[uid] = p
		delete(w.changedAt, uid)
	}
	return p, !ok
}

// stepLocked applies an event to the lifecycle of p and carries out its effect, except for
// the call, which beginLocked makes.
func (w *Workers) stepLocked(p *worker, in input) effect {
	before := p.lifecycle.state
	var e effect
	p.lifecycle, e = step(p.lifecycle, in)
	w.table.setWorker(p.lifecycle.row(p.uid))
	if p.lifecycle.state != before {
		p.since = time.Now()
	}
	if p.requested.IsZero() && p.lifecycle.cause != "" {
		p.requested = time.Now()
	}
	if e.outcome != 0 {
		p.notify(e.outcome)
	}
	if e.cancel && p.cancel != nil {
		p.cancel()
	}
	if e.wake {
		w.wakeLocked(p)
	}
	if p.lifecycle.state == Finished {
		w.finishLocked(p)
	}
	return e
}

// finishLocked wakes the workers that wait for p to finish.
func (w *Workers) finishLocked(p *worker) {
	w.settled[p.uid] = struct{}{}
	signal(w.finished)
	w.wakePreemptorLocked(p)
	if p.static == "" {
		return
	}
	// The next pod of this name starts at once.
	if next, ok := w.pods[w.names.remove(p.static, p.uid)]; ok && next.lifecycle.state == Waiting {
		w.wakeLocked(next)
	}
	p.static = ""
}

// notify sends the outcome to the callers of Kill.
func (p *worker) notify(o Outcome) {
	for _, done := range p.done {
		send(done, o)
	}
	p.done = nil
}

// signal sends to a channel of capacity 1, which may be full.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
