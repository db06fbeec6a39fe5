package podworker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/staticpod"
	"github.com/kubeparts/kubeparts/runtime"
)

// Workers run one life per pod UID. Tell them what is wanted with Update,
// Remove, Sync and Kill, at any time and from any goroutine: none of them
// blocks or does the work itself. The work is done while Run runs.
//
// There is no goroutine for a pod that has nothing to do.
type Workers struct {
	cfg    Config
	delays delays

	// Each has room for one signal; senders don't wait.
	ready    chan struct{} // the queue is not empty
	finished chan struct{} // a pod has come to its end: Loop sweeps

	// mu guards the fields below.
	mu    sync.Mutex
	pods  map[types.UID]*worker
	turns turns
	queue []types.UID // due, in order; a UID is in it at most once
}

// A worker is one pod's life and what surrounds it.
type worker struct {
	life life

	uid    types.UID
	static string // full name of a static pod, else ""

	queued  bool // in Workers.queue
	due     time.Time
	running bool               // a call is in flight
	again   bool               // became due while a call was in flight
	cancel  context.CancelFunc // of the call in flight
	timer   *time.Timer        // makes it due; nil if none was set yet

	called time.Time // when the last call returned, or was given up; zero: none was made
	met    bool      // the Handler was called
	next   time.Time // when it is due again, for people
	err    error     // of the last call, for people
	done   []chan struct{}
}

// New returns Workers for cfg, or an error if it lacks something. It starts
// nothing.
func New(cfg Config) (*Workers, error) {
	switch {
	case cfg.Handler == nil:
		return nil, errors.New("podworker: Config.Handler is nil")
	case cfg.Statuses == nil:
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
	}, nil
}

// Run does the work until ctx ends, and returns nil when the last call has
// returned. Containers go on running. Run it once.
func (w *Workers) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer w.stopTimers()
	freed := make(chan struct{}, max(w.cfg.Parallel, 1))
	busy := 0
	for {
		for w.cfg.Parallel == 0 || busy < w.cfg.Parallel {
			uid, ok := w.pop()
			if !ok {
				break
			}
			busy++
			wg.Go(func() {
				w.work(ctx, uid)
				if w.cfg.Parallel > 0 {
					freed <- struct{}{} // has room for every goroutine there can be
				}
			})
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.ready:
		case <-freed:
			busy--
		}
	}
}

// Update says what a source wants the pod to be. create tells that the source
// has just begun to want it, which starts a pod over that is ending or has
// ended under the same UID.
func (w *Workers) Update(pod *v1.Pod, create bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, first := w.workerLocked(pod.UID)
	stopped := false
	if first {
		p.life.state = Syncing
		if staticpod.Is(pod) {
			p.life.state = Waiting
			p.static = staticpod.FullName(pod)
			w.turns.join(p.static, pod.UID)
		}
		status, err := w.cfg.Statuses.Get(pod.UID)
		stopped = err == nil && !status.Running()
	}
	var e effect
	p.life, e = p.life.want(pod, create, first, stopped)
	w.applyLocked(p, e)
}

// Sync makes the pod due now, because something about it changed. It reports
// whether the pod is known.
func (w *Workers) Sync(uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.pods[uid]
	if ok && p.life.state == Syncing {
		w.wakeLocked(p)
	}
	return ok
}

// Remove says that no source wants the pod any more.
func (w *Workers) Remove(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.pods[uid]; ok {
		var e effect
		p.life, e = p.life.remove()
		w.applyLocked(p, e)
	}
}

// Kill ends the pod for a reason of the agent's own (eviction, preemption,
// shutdown). The channel is closed when nothing of the pod runs any more, at
// once if that is so already or the pod is unknown (lq-6).
func (w *Workers) Kill(uid types.UID, opts KillOptions) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	done := make(chan struct{})
	p, ok := w.pods[uid]
	if !ok {
		close(done)
		return done
	}
	p.done = append(p.done, done)
	var e effect
	p.life, e = p.life.kill(opts)
	w.applyLocked(p, e)
	return done
}

// KillOrphan ends a pod that was found in the runtime and that nobody wants. It
// has Config.OrphanGrace to stop (sl-56). A pod that is known already is left alone.
func (w *Workers) KillOrphan(orphan *runtime.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, first := w.workerLocked(orphan.UID)
	if !first {
		return
	}
	p.life = life{state: Stopping, orphan: orphan, deleted: true, grace: w.cfg.OrphanGrace}
	w.wakeLocked(p)
}

// workerLocked returns the worker for uid, made if there was none.
func (w *Workers) workerLocked(uid types.UID) (p *worker, first bool) {
	p, ok := w.pods[uid]
	if !ok {
		p = &worker{uid: uid}
		w.pods[uid] = p
	}
	return p, !ok
}

// applyLocked does what a transition asked for, and what follows from the state
// it led to.
func (w *Workers) applyLocked(p *worker, e effect) {
	if e.done {
		for _, c := range p.done {
			close(c)
		}
		p.done = nil
	}
	if e.cancel && p.cancel != nil {
		p.cancel()
	}
	if e.wake {
		w.wakeLocked(p)
	}
	if p.life.state != Finished {
		return
	}
	signal(w.finished)
	if p.static != "" {
		// Its place is free: the next pod of this name starts at once (L-30).
		if turn, ok := w.pods[w.turns.leave(p.static, p.uid)]; ok && turn.life.state == Waiting {
			w.wakeLocked(turn)
		}
		p.static = ""
	}
}

// signal sets a signal that may be set already.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// wakeLocked makes p due now.
func (w *Workers) wakeLocked(p *worker) {
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.running {
		p.again = true
		return
	}
	if p.queued {
		return
	}
	p.queued, p.due, p.next = true, time.Now(), time.Time{}
	w.queue = append(w.queue, p.uid)
	signal(w.ready)
}

// pop takes the first due pod off the queue.
func (w *Workers) pop() (types.UID, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return "", false
	}
	uid := w.queue[0]
	w.queue = w.queue[1:]
	return uid, true
}

func (w *Workers) stopTimers() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pods {
		if p.timer != nil {
			p.timer.Stop()
		}
	}
}

// A due is one call that is about to be made.
type due struct {
	call   call
	state  State
	work   Work
	since  time.Time // when it became due
	after  time.Time // the status has to be newer than this
	static string    // full name of a static pod
	met    bool      // the Handler was called
}

// work makes one call for uid, if one is due.
func (w *Workers) work(ctx context.Context, uid types.UID) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d, ok := w.begin(uid, cancel)
	if !ok {
		return
	}
	info := WorkInfo{UID: uid, State: d.state, Queued: time.Since(d.since), First: d.work.First}
	next, err := w.call(ctx, &d, &info)
	info.Err = err
	news := w.end(&d, next, err)
	if w.cfg.Hooks.Worked != nil {
		w.cfg.Hooks.Worked(info)
	}
	if err != nil && next.Retry.IsZero() && !errors.Is(err, context.Canceled) { // a back-off is no news: the status says it
		level := slog.LevelWarn
		if !news {
			level = slog.LevelDebug // each retry would say it again
		}
		w.cfg.Logger.Log(ctx, level, "pod work failed", "uid", uid, "pod", nameOf(d.work), "state", d.state.String(), "err", err)
	}
}

// begin settles what is to be called for uid, and marks the call as in flight.
func (w *Workers) begin(uid types.UID, cancel context.CancelFunc) (due, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.pods[uid]
	if !ok {
		return due{}, false
	}
	p.queued = false
	var c call
	p.life, c = p.life.begin(p.static == "" || w.turns.has(p.static, uid))
	if c == callNone {
		return due{}, false
	}
	p.running, p.cancel = true, cancel
	work := Work{UID: uid, Pod: p.life.pod, Orphan: p.life.orphan, First: !p.met, Ending: p.life.ending}
	if c != callSync {
		work.GracePeriodSeconds = p.life.grace
	}
	return due{call: c, state: p.life.state, work: work, since: p.due, after: p.called, static: p.static}, true
}

// call waits for a status of the pod that is newer than the last call (pw-36),
// and calls the Handler.
func (w *Workers) call(ctx context.Context, d *due, info *WorkInfo) (next Next, err error) {
	begun := time.Now()
	if d.work.Orphan == nil {
		d.work.Status, err = w.cfg.Statuses.GetNewerThan(ctx, d.work.UID, d.after)
		info.Observed = time.Since(begun)
		if err != nil {
			if ctx.Err() == nil {
				w.cfg.Record(runtime.Event{
					Object: runtime.PodRef(d.work.Pod), Type: v1.EventTypeWarning,
					Reason: "FailedSync", Message: fmt.Sprintf("error determining status: %v", err),
				})
			}
			return Next{}, fmt.Errorf("podworker: observe pod: %w", err)
		}
	}
	if d.call == callSync && d.work.First && d.static != "" && w.leftOver(d.static, d.work.UID) {
		return Next{Retry: time.Now().Add(w.delays.network)}, errors.New("podworker: a pod of the same name, which nobody wants, has not stopped yet")
	}
	d.met = true
	defer func(t time.Time) { info.Duration = time.Since(t) }(time.Now())
	switch d.call {
	case callSync:
		return w.cfg.Handler.Sync(ctx, d.work)
	case callTerminate:
		return Next{}, w.cfg.Handler.Terminate(ctx, d.work)
	default:
		return Next{}, w.cfg.Handler.Cleanup(ctx, d.work)
	}
}

// leftOver reports whether the runtime runs another pod of that full name, which
// is not one of the wanted pods: a manifest was changed while no agent ran. The
// turns don't know of it, and the new pod has to wait for it all the same
// (inv-3); Loop.Sweep ends it.
func (w *Workers) leftOver(fullName string, uid types.UID) bool {
	// A status was waited for before, so that there has been a list.
	for _, pod := range w.cfg.Pods() {
		if pod.UID == uid || pod.Name+"_"+pod.Namespace != fullName || !running(pod) {
			continue
		}
		w.mu.Lock()
		other, known := w.pods[pod.UID]
		orphan := !known || other.life.orphan != nil
		w.mu.Unlock()
		if orphan {
			return true
		}
	}
	return false
}

// end takes in the outcome of a call, and sets the time of the next one. It
// reports whether err is another than that of the call before.
func (w *Workers) end(d *due, next Next, err error) (news bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	uid, c := d.work.UID, d.call
	p := w.pods[uid]
	p.running, p.cancel = false, nil
	news = err != nil && (p.err == nil || p.err.Error() != err.Error())
	p.called, p.err = time.Now(), err
	p.met = p.met || d.met
	var e effect
	p.life, e = p.life.end(c, next.Terminal, err)
	e.wake = e.wake || p.again
	p.again = false
	if p.life.state == Finished {
		e.wake = false
	}
	w.applyLocked(p, e)
	if p.queued || p.life.state == Finished {
		return news
	}
	wait := w.delays.after(p.called, next, err, w.cfg.Jitter)
	p.next = p.called.Add(wait)
	if p.timer == nil {
		p.timer = time.AfterFunc(wait, func() { w.expired(uid) })
		return news
	}
	p.timer.Reset(wait)
	return news
}

// expired makes uid due when its timer has run out.
func (w *Workers) expired(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.pods[uid]; ok {
		w.wakeLocked(p)
	}
}

func nameOf(work Work) string {
	switch {
	case work.Pod != nil:
		return work.Pod.Namespace + "/" + work.Pod.Name
	case work.Orphan != nil:
		return work.Orphan.Namespace + "/" + work.Orphan.Name
	default:
		return ""
	}
}
