package shutdown

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/runtime"
)

// Config configures a [Manager].
type Config struct {
	// Policy determines when pods are terminated. The zero value disables graceful shutdown.
	Policy Policy

	// State is read by parts of the node that are constructed before the Manager. If nil, New
	// constructs one.
	State *State

	// Triggers report that the machine is about to stop. A shutdown lasts from the first
	// notice until all triggers that reported it have canceled it. Without triggers there is
	// none.
	Triggers []Trigger

	// Pods are the pods of the node. Required.
	Pods Pods

	// Statuses publishes the statuses of pods. If nil, pods stay ready until they terminate,
	// and a shutdown does not wait for their final statuses.
	Statuses Statuses

	// Path of the checkpoint with the times of the last shutdown, in the kubelet's format;
	// the kubelet's is [StateFile] in its root directory. If empty, there is none.
	Path string

	// Node is the object of the node's events.
	Node v1.ObjectReference

	// Record records an event. It must not block. If nil, events are dropped.
	Record func(runtime.Event)

	// Logger receives the log. If nil, nothing is logged.
	Logger *slog.Logger

	// Hooks are called by the Manager.
	Hooks Hooks
}

// Pods are the pods of a node.
type Pods interface {
	// Running returns the pods that may have running containers. The pods are not modified.
	Running() []*v1.Pod

	// Kill terminates a pod with the status k.Termination. It must block until no
	// container of the pod runs or ctx is done, and must continue the termination in the
	// latter case. It is called on a goroutine for each pod, and again with a shorter grace
	// period if the machine turns out to stop earlier.
	Kill(ctx context.Context, k Kill) error

	// AwaitCleaned blocks until the volumes of a terminated pod are unmounted and its final
	// status is computed, or ctx is done. It is called on the goroutine of Kill.
	AwaitCleaned(ctx context.Context, pod *v1.Pod) error
}

// Statuses publishes the statuses of pods.
type Statuses interface {
	// Report computes the statuses of pods again, because the result of [State.Unready]
	// has changed, and returns when that is done or ctx is.
	Report(ctx context.Context, pods []*v1.Pod) error

	// Flush returns when all computed statuses are recorded, for example in the API server,
	// or ctx is done.
	Flush(ctx context.Context) error
}

// A Kill is the termination of a pod.
type Kill struct {
	Pod *v1.Pod

	// GracePeriodSeconds is the grace period of the pod.
	GracePeriodSeconds int64
}

// A Manager terminates the pods of a machine that is about to stop, in order, and delays the
// machine until then. Times and the methods of State are safe for concurrent use.
type Manager struct {
	*State // Config.State, or the one that New has constructed
	cfg    Config
	ran    runonce.Guard

	mu             sync.Mutex // guards the fields below
	started, ended time.Time  // of the last shutdown
}

// New returns a Manager, or an error if cfg is invalid. It starts no goroutine.
func New(cfg Config) (*Manager, error) {
	if cfg.Pods == nil {
		return nil, errors.New("shutdown: Config.Pods is nil")
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
	cfg.Hooks.setDefaults()
	if cfg.State == nil {
		cfg.State = new(State)
	}
	return &Manager{State: cfg.State, cfg: cfg}, nil
}

// retryMin and retryMax bound the delay before a failed Trigger is watched again. It doubles with
// each consecutive failure.
const (
	retryMin = time.Second
	retryMax = 30 * time.Second
)

// A triggerNotice is a notice of the trigger with the given index.
type triggerNotice struct {
	trigger int
	Notice
}

// Run waits for shutdowns and carries them out. It blocks until ctx is done and returns nil. If
// that happens during a shutdown, the shutdown is abandoned and the machine released. A second
// call returns an error.
func (m *Manager) Run(ctx context.Context) error {
	if err := m.ran.Enter("shutdown: Manager"); err != nil {
		return err
	}
	if !m.cfg.Policy.Enabled() {
		<-ctx.Done()
		return nil
	}
	m.loadTimes()
	var wg sync.WaitGroup
	defer wg.Wait()
	notices := make(chan triggerNotice)
	for i, t := range m.cfg.Triggers {
		wg.Go(func() { m.watch(ctx, i, t, notices) })
	}
	active := map[int]Notice{} // by trigger: the machine is about to stop
	var stop context.CancelFunc
	var times *schedule
	var done chan struct{} // closed when the pods have terminated; nil: no shutdown in progress
	for {
		select {
		case <-ctx.Done():
			if stop != nil {
				stop()
			}
			return nil
		case <-done:
			done = nil
			for _, n := range active {
				release(n)
			}
		case n := <-notices:
			before, was := len(active), active[n.trigger]
			if n.Stopping {
				active[n.trigger] = joined(was, n.Notice)
			} else {
				delete(active, n.trigger)
				release(was)
			}
			switch {
			case before == 0 && len(active) > 0:
				var shutdown context.Context
				shutdown, stop = context.WithCancel(ctx)
				done = make(chan struct{})
				terminated := done
				times = newSchedule(m.cfg.Policy, n.Deadline)
				m.begin()
				wg.Go(func() { defer close(terminated); m.terminate(shutdown, times) })
			case before > 0 && len(active) == 0:
				stop()
				if done != nil {
					<-done
				}
				stop, done = nil, nil
				m.canceled(ctx)
			case done == nil && n.Stopping:
				release(n.Notice) // the pods have already terminated
			case n.Stopping && times.shorten(n.Deadline):
				m.cfg.Logger.Warn("Shutdown deadline moved forward; remaining periods are shortened", "deadline", n.Deadline)
			}
		}
	}
}

// joined returns the second of two notices of a trigger, which may have reconnected in between.
// Its Release also calls that of the first.
func joined(first, second Notice) Notice {
	releaseFirst, releaseSecond := first.Release, second.Release
	if releaseFirst != nil {
		second.Release = func() {
			releaseFirst()
			release(Notice{Release: releaseSecond})
		}
	}
	return second
}

func release(n Notice) {
	if n.Release != nil {
		n.Release()
	}
}

// watch watches a trigger until ctx is done.
func (m *Manager) watch(ctx context.Context, index int, t Trigger, notices chan<- triggerNotice) {
	notify := func(n Notice) {
		select {
		case notices <- triggerNotice{index, n}:
		case <-ctx.Done():
		}
	}
	for wait := retryMin; ; {
		started := time.Now()
		err := t.Watch(ctx, m.cfg.Policy.Total(), notify)
		if ctx.Err() != nil {
			return
		}
		if time.Since(started) >= retryMax { // it had worked for a while
			wait = retryMin
		}
		m.cfg.Logger.Error("Failed to watch for shutdowns of the machine; will retry", "err", err, "retryAfter", wait)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, retryMax)
	}
}

// begin makes the node not ready and rejects pods from now on.
func (m *Manager) begin() {
	m.setStopping(true)
	m.event(eventShutdown)
}

// canceled makes the node ready again, and the pods that were not terminated.
func (m *Manager) canceled(ctx context.Context) {
	drained := m.undrain()
	m.setStopping(false)
	m.event(eventCancel)
	var pods []*v1.Pod
	for _, pod := range m.cfg.Pods.Running() {
		if drained[pod.UID] {
			pods = append(pods, pod)
		}
	}
	if m.cfg.Statuses != nil && len(pods) > 0 {
		reporting, cancel := context.WithTimeout(ctx, publishTimeout)
		defer cancel()
		if err := m.cfg.Statuses.Report(reporting, pods); err != nil {
			m.cfg.Logger.Warn("Failed to publish that pods are ready again; the next sync does", "err", err)
		}
	}
}

func (m *Manager) event(message string) {
	if m.cfg.Record != nil {
		m.cfg.Record(runtime.Event{Object: m.cfg.Node, Type: v1.EventTypeNormal, Reason: eventReason, Message: message})
	}
}
