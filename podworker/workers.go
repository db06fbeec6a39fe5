package podworker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/runtime"
)

// Workers run one life per pod UID. Tell them what is wanted with Update,
// Remove, Sync and Kill, at any time and from any goroutine: none of them
// blocks or does the work itself. The work is done while Run runs.
//
// There is no goroutine for a pod that has nothing to do.
type Workers struct {
	cfg    Config
	ran    runonce.Guard
	delays delays

	// Each has room for one signal; senders don't wait.
	ready    chan struct{} // there is a due pod, and a place for its call
	finished chan struct{} // a pod has come to its end: Loop settles

	// mu guards the fields below.
	mu      sync.Mutex
	pods    map[types.UID]*worker
	turns   turns
	queue   queue                  // due, in order; a UID is in it at most once
	busy    int                    // calls that count towards Config.Parallel
	settled map[types.UID]struct{} // finished, or heard of since: for Loop to look at
	ended   bool                   // Run has returned: nothing will be done

	// doomed are the pods without a life whose next one is to end before it
	// starts anything (life.doom).
	doomed map[types.UID]KillOptions

	// touched has, of pods that were forgotten, worker.touched: a pod that is added
	// with the same UID must not be given a status from before that, in which
	// containers run that were terminated. Entries are removed after keepTouched.
	touched map[types.UID]time.Time
}

// A worker is one pod's life and what surrounds it.
type worker struct {
	life life

	uid    types.UID
	static string  // full name of a static pod, else ""
	mirror *v1.Pod // the API server's copy of it, if it is known

	queued bool // in Workers.queue
	again  bool // became due while a call was in flight
	due    time.Time

	// The call in flight.
	running  bool
	calling  call
	observed atomic.Bool // it is past the wait for a status
	began    time.Time
	cancel   context.CancelFunc

	timer *time.Timer // makes it due; nil if none was set yet
	next  time.Time   // when that is
	wait  Wait        // and what for

	seen     time.Time // when the pod was first heard of
	since    time.Time // when its state began
	asked    time.Time // when its termination was requested
	called   time.Time // when the last call returned, or was given up; zero: none was made
	touched  time.Time // when the last one of these returned that may have done something
	met      bool      // the Handler was called
	err      error     // of the last call
	failures int       // calls in a row that failed
	done     []chan Outcome

	victims   map[types.UID]struct{} // whose end it waits for; nil: nobody's
	preemptor *worker                // who waits for this one's end; nil: nobody
}

// New returns Workers for cfg, or an error if it lacks something. It starts
// nothing.
func New(cfg Config) (*Workers, error) {
	switch {
	case cfg.Handler == nil:
		return nil, errors.New("podworker: Config.Handler is nil")
	case cfg.StatusCache == nil:
		return nil, errors.New("podworker: Config.Statuses is nil")
	case cfg.Resync < 0 || cfg.Retry < 0 || cfg.Parallel < 0:
		return nil, errors.New("podworker: negative Config.Resync, Retry or Parallel")
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
		cfg.Jitter = jittered
	}
	if cfg.Pods == nil {
		cfg.Pods = func() []*runtime.Pod { return nil }
	}
	if cfg.Record == nil {
		cfg.Record = func(runtime.Event) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Workers{
		cfg:      cfg,
		delays:   delays{resync: cfg.Resync, retry: cfg.Retry, network: time.Second},
		ready:    make(chan struct{}, 1),
		finished: make(chan struct{}, 1),
		pods:     map[types.UID]*worker{},
		turns:    turns{},
		doomed:   map[types.UID]KillOptions{},
		touched:  map[types.UID]time.Time{},
		settled:  map[types.UID]struct{}{},
	}, nil
}

// Run makes the calls of the Handler until ctx is done, and returns nil when the
// last one has returned. Containers keep running; the outcome of pending Kills is
// Abandoned. A second call returns an error.
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
				// Having done its work, it does what else there is: a goroutine
				// for each call would cost more than most calls.
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

// end is what is left to do when no call will be made any more.
func (w *Workers) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for _, p := range w.pods {
		if p.timer != nil {
			p.timer.Stop()
		}
		p.tell(Abandoned)
	}
}

// Update says what a source wants the pod to be. create tells that the source
// has just begun to want it, which starts a pod over that is ending or has
// ended under the same UID.
func (w *Workers) Update(pod *v1.Pod, create bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, first := w.workerLocked(pod.UID)
	in := wanted{pod: pod, create: create, first: first}
	if first {
		if in.static = runtime.IsStatic(pod); in.static {
			p.static = runtime.PodFullName(pod)
			w.turns.join(p.static, pod.UID)
		}
		status, err := w.cfg.StatusCache.Get(pod.UID)
		in.stopped = err == nil && !status.Running()
	}
	w.stepLocked(p, in)
	if opts, ok := w.doomed[pod.UID]; ok && first {
		delete(w.doomed, pod.UID)
		w.stepLocked(p, killed{opts})
	}
}

// Mirror says what copy of a static pod the API server has; nil: none. The pod
// becomes due. Of a pod that is not known, nothing is kept.
func (w *Workers) Mirror(uid types.UID, mirror *v1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.pods[uid]; ok {
		p.mirror = mirror
		w.syncLocked(p)
	}
}

// Sync makes the pod due now, because something about it changed. It reports
// whether the pod is known.
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
	if p.life.state == Syncing {
		w.wakeLocked(p)
	}
}

// Remove says that no source wants the pod any more.
func (w *Workers) Remove(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.doomed, uid)
	if p, ok := w.pods[uid]; ok {
		w.stepLocked(p, unwanted{})
	}
}

// keepTouched is longer than any period of relists.
const keepTouched = 10 * time.Minute

// workerLocked returns the worker for uid, made if there was none.
func (w *Workers) workerLocked(uid types.UID) (p *worker, first bool) {
	p, ok := w.pods[uid]
	if !ok {
		now := time.Now()
		p = &worker{uid: uid, seen: now, since: now, touched: w.touched[uid]}
		w.pods[uid] = p
		delete(w.touched, uid)
	}
	return p, !ok
}

// stepLocked takes a life one step further, and does what that asks for, but
// for the call, which is for the one who gave it its turn.
func (w *Workers) stepLocked(p *worker, in input) effect {
	before := p.life.state
	var e effect
	p.life, e = step(p.life, in)
	if p.life.state != before {
		p.since = time.Now()
	}
	if p.asked.IsZero() && p.life.cause != "" {
		p.asked = time.Now()
	}
	if e.outcome != 0 {
		p.tell(e.outcome)
	}
	if e.cancel && p.cancel != nil {
		p.cancel()
	}
	if e.wake {
		w.wakeLocked(p)
	}
	if p.life.state == Finished {
		w.finishLocked(p)
	}
	return e
}

// finishLocked does what follows from the end of a life.
func (w *Workers) finishLocked(p *worker) {
	w.settled[p.uid] = struct{}{}
	signal(w.finished)
	w.giveWayLocked(p)
	if p.static == "" {
		return
	}
	// Its place is free: the next pod of this name starts at once (L-30).
	if turn, ok := w.pods[w.turns.leave(p.static, p.uid)]; ok && turn.life.state == Waiting {
		w.wakeLocked(turn)
	}
	p.static = ""
}

// tell lets those who wait for the pod's end know of it.
func (p *worker) tell(o Outcome) {
	for _, done := range p.done {
		tell(done, o)
	}
	p.done = nil
}

// signal sets a signal that may be set already.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
