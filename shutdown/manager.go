package shutdown

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/runtime"
)

// Config configures a [Manager].
type Config struct {
	// Policy is what the operator decides. Its zero value is off.
	Policy Policy

	// Triggers tell when the machine is about to stop; it is when one of them says
	// so, until that one says otherwise. None: never.
	Triggers []Trigger

	// Pods returns the pods of which something may run. Required. They are not
	// changed.
	Pods func() []*v1.Pod

	// Kill ends a pod with [Ending], and returns when nothing of it runs, or ctx
	// ends; the kill goes on then. Required. It is called from a goroutine per pod;
	// again, with less grace, if the machine turns out to stop sooner.
	Kill func(ctx context.Context, k Kill) error

	// Cleaned returns when the volumes of a pod that has ended are unmounted, and
	// its last status is made; or ctx ends. Nil: nobody waits for that (sh-10).
	Cleaned func(ctx context.Context, pod *v1.Pod) error

	// Report has the statuses of pods made anew, since what [Manager.Unready] says of
	// them has changed, and returns when that is done; or ctx ends. Nil: pods stay
	// ready until they end (F-63).
	Report func(ctx context.Context, pods []*v1.Pod) error

	// Flush returns when all statuses that were made are recorded, in the API server
	// for one, or ctx ends. Nil: nobody waits for that (F-64).
	Flush func(ctx context.Context) error

	// Changed is told when what [Manager.Err] says has changed: the node's status is
	// to say so at once (sh-6). It must not block. Nil: nobody wants to know.
	Changed func()

	// File is the path of the record of the last shutdown, in the kubelet's format;
	// its name there is <root>/graceful_node_shutdown_state (sh-11). Empty: there is
	// none.
	File string

	// Node is whom events are about; Record takes them, and must not block. Nil: they
	// are dropped.
	Node   v1.ObjectReference
	Record func(runtime.Event)

	// Logger, nil discards.
	Logger *slog.Logger

	// Hooks observe; see there.
	Hooks Hooks
}

// A Kill is a pod that is to end.
type Kill struct {
	Pod *v1.Pod

	// GracePeriodSeconds to end in (sh-8).
	GracePeriodSeconds int64
}

// A Manager ends the pods of a machine that is about to stop, in order, and has the
// machine wait meanwhile. Make one with [New]. Err, Admit and Unready may be called
// from any goroutine.
type Manager struct {
	cfg Config
	ran runonce.Guard

	mu       sync.Mutex // guards the fields below
	stopping bool
	draining map[types.UID]bool // to be shown as not ready

	start, over time.Time // of the last one
}

// New returns a Manager for cfg, or an error that says what of cfg can't be. It
// starts nothing.
func New(cfg Config) (*Manager, error) {
	switch {
	case cfg.Pods == nil:
		return nil, errors.New("shutdown: Config.Pods is nil")
	case cfg.Kill == nil:
		return nil, errors.New("shutdown: Config.Kill is nil")
	}
	if err := cfg.Policy.check(); err != nil {
		return nil, fmt.Errorf("shutdown: Config.Policy: %w", err)
	}
	for i, t := range cfg.Triggers {
		if t == nil {
			return nil, fmt.Errorf("shutdown: Config.Triggers[%d] is nil", i)
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Hooks.fill()
	return &Manager{cfg: cfg, draining: map[types.UID]bool{}}, nil
}

// Err is [ErrShuttingDown] while the machine is about to stop, else nil: what keeps
// the node from being ready (sh-6).
func (m *Manager) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopping {
		return ErrShuttingDown
	}
	return nil
}

// Admit implements podworker.Admitter: it rejects all pods while the machine is
// about to stop (sh-6).
func (m *Manager) Admit(context.Context, *v1.Pod) *runtime.Rejection {
	if m.Err() != nil {
		return &runtime.Rejection{Reason: NodeShutdown, Message: NodeShutdownMessage}
	}
	return nil
}

// Unready reports whether the pod is to be shown as not ready, because it is about to
// be ended (F-63).
func (m *Manager) Unready(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.draining[uid]
}

// retryMin and retryMax bound the wait before a Trigger is asked again that has
// failed (sh-4): it doubles with each failure in a row.
const (
	retryMin = time.Second
	retryMax = 30 * time.Second
)

// told is a notice of one of the triggers.
type told struct {
	by int
	Notice
}

// Run waits for a shutdown and carries it out, as often as there is one, until ctx
// ends; then it returns nil. A shutdown that ctx interrupts is left as it is, and the
// machine no longer waits. A second call returns an error.
func (m *Manager) Run(ctx context.Context) error {
	if err := m.ran.Enter("shutdown: Manager"); err != nil {
		return err
	}
	if !m.cfg.Policy.Enabled() {
		<-ctx.Done()
		return nil
	}
	m.tellLast()
	var wg sync.WaitGroup
	defer wg.Wait()
	notices := make(chan told)
	for i, t := range m.cfg.Triggers {
		wg.Go(func() { m.watch(ctx, i, t, notices) })
	}
	says := map[int]Notice{} // the triggers that say that the machine is about to stop
	var stop context.CancelFunc
	var times *schedule
	var done chan struct{} // closed when the pods have ended; nil: no shutdown is under way, or it is over
	for {
		select {
		case <-ctx.Done():
			if stop != nil {
				stop()
			}
			return nil
		case <-done:
			done = nil
			for _, n := range says {
				release(n)
			}
		case n := <-notices:
			before, was := len(says), says[n.by]
			if n.Stopping {
				says[n.by] = both(was, n.Notice)
			} else {
				delete(says, n.by)
				release(was)
			}
			switch {
			case before == 0 && len(says) > 0:
				var ending context.Context
				ending, stop = context.WithCancel(ctx)
				done = make(chan struct{})
				ended := done
				times = newSchedule(m.cfg.Policy, n.Deadline)
				m.begin()
				wg.Go(func() { defer close(ended); m.end(ending, times) })
			case before > 0 && len(says) == 0:
				stop()
				if done != nil {
					<-done
				}
				stop, done = nil, nil
				m.cancelled(ctx)
			case done == nil && n.Stopping:
				release(n.Notice) // all is done already
			case n.Stopping && times.shorten(n.Deadline):
				m.cfg.Logger.Warn("the machine stops sooner than it was said", "deadline", n.Deadline)
			}
		}
	}
}

// both is a notice of a trigger that says so once more, as one that has lost its
// connection meanwhile: what the first one held is to be released as well.
func both(was, is Notice) Notice {
	first, second := was.Release, is.Release
	if first != nil {
		is.Release = func() {
			first()
			release(Notice{Release: second})
		}
	}
	return is
}

func release(n Notice) {
	if n.Release != nil {
		n.Release()
	}
}

// watch asks one trigger for as long as it takes.
func (m *Manager) watch(ctx context.Context, by int, t Trigger, notices chan<- told) {
	tell := func(n Notice) {
		select {
		case notices <- told{by, n}:
		case <-ctx.Done():
		}
	}
	for wait := retryMin; ; {
		started := time.Now()
		err := t.Watch(ctx, m.cfg.Policy.Total(), tell)
		if ctx.Err() != nil {
			return
		}
		if time.Since(started) >= retryMax { // it was well for a while
			wait = retryMin
		}
		m.cfg.Logger.Error("it is not known for now when the machine stops", "err", err, "again", wait)
		m.cfg.Hooks.WatchFailed(err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, retryMax)
	}
}

// begin closes the node (sh-5, sh-6).
func (m *Manager) begin() {
	m.setStopping(true)
	m.event(eventShutdown)
}

// cancelled opens it again. Pods that were ended stay so; the others are ready again.
func (m *Manager) cancelled(ctx context.Context) {
	m.mu.Lock()
	was := maps.Clone(m.draining)
	clear(m.draining)
	m.mu.Unlock()
	m.setStopping(false)
	m.event(eventCancel)
	var pods []*v1.Pod
	for _, pod := range m.cfg.Pods() {
		if was[pod.UID] {
			pods = append(pods, pod)
		}
	}
	if m.cfg.Report != nil && len(pods) > 0 {
		reporting, cancel := context.WithTimeout(ctx, publishTimeout)
		defer cancel()
		if err := m.cfg.Report(reporting, pods); err != nil {
			m.cfg.Logger.Warn("it is not said yet that pods are ready again", "err", err)
		}
	}
}

func (m *Manager) setStopping(is bool) {
	m.mu.Lock()
	m.stopping = is
	m.mu.Unlock()
	if m.cfg.Changed != nil {
		m.cfg.Changed()
	}
}

func (m *Manager) event(message string) {
	if m.cfg.Record != nil {
		m.cfg.Record(runtime.Event{Object: m.cfg.Node, Type: v1.EventTypeNormal, Reason: EventReason, Message: message})
	}
}
