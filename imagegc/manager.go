package imagegc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/runtime"
)

// Config configures a [Manager].
type Config struct {
	// Store lists and removes the images. Required. Its methods are not called concurrently
	// by passes, and may block. It may implement [Forgetter].
	Store runtime.ImageStore

	// Space measures the image file system. It is called after each removal and must not
	// cache. Required unless Policy.HighPercent is 100.
	Space func(ctx context.Context) (Space, error)

	// Pods returns the pods that run here or may start, whose images are kept even without a
	// container. synced reports whether the list is complete; until it is, no image is
	// removed, because after a reboot no container runs yet. If nil, only containers count.
	Pods func() (pods []*v1.Pod, synced bool)

	// Policy determines which images are removed.
	Policy Policy

	// Period is the interval between passes. Zero means 5 minutes.
	Period time.Duration

	// Path of the checkpoint with the times when images were first detected and last used.
	// Its directory must exist. If empty, ages are reset by a restart, as in the kubelet.
	Path string

	// Consumers returns other consumers of the space, for the error of a pass that cannot free
	// enough. It may be slow. Optional.
	Consumers func(ctx context.Context) ([]Consumer, error)

	// Node is the object of the node's events.
	Node v1.ObjectReference

	// Record records an event. It must not block. If nil, events are dropped.
	Record func(runtime.Event)

	// Logger receives the log. If nil, nothing is logged.
	Logger *slog.Logger

	// Hooks are called by the Manager.
	Hooks Hooks
}

// A Forgetter is an optional interface of Config.Store, which stores data by image. Without
// it such data is kept. cri.Runtime implements it.
type Forgetter interface {
	// ForgetImages deletes the data of images other than present, the IDs of all images,
	// which were listed after before. It is called after each list, on the goroutine of the
	// pass. An error is logged.
	ForgetImages(present []string, before time.Time) error
}

// Hooks are called as a [Manager] works, on the goroutine of the pass. Any may be nil. They
// must not call the Manager.
type Hooks struct {
	// Removed is called for each image that was removed
	// (kubelet_image_garbage_collected_total, by reason).
	Removed func(RemovedInfo)

	// Passed is called after each pass.
	Passed func(PassInfo)

	// Trace is called when a pass begins, whose calls of Store and Space get the returned
	// context. end is called with the error of the pass.
	Trace func(ctx context.Context) (traced context.Context, end func(err error))
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add(&h.Removed, o.Removed)
		compose.Add(&h.Passed, o.Passed)
		compose.AddTrace(&h.Trace, o.Trace)
	}
	return h
}

// RemovedInfo describes the removal of an image.
type RemovedInfo struct {
	Record Record
	Reason string // "space", "age" or "denied"

	// Freed is the change of the available space in bytes; it may be negative. It is valid
	// only if Measured is true.
	Freed    int64
	Measured bool
}

// PassInfo describes a pass.
type PassInfo struct {
	Report   Report
	Err      error
	Duration time.Duration
}

const defaultPeriod = 5 * time.Minute

// A Manager removes unused images from a node.
type Manager struct {
	cfg Config
	ran runonce.Guard

	// turn holds a token while a pass is in progress, which owns the fields below.
	turn     chan struct{}
	records  []Record
	since    time.Time // of the first pass on this node
	loaded   bool
	failures int // consecutive failed passes

	holds holds

	mu     sync.Mutex      // guards the fields below
	images []runtime.Image // as last listed; replaced, never modified
	listed time.Time
	names  index // of images; nil until it is needed
}

// New returns a Manager, or an error if cfg is invalid. It starts no goroutine and reads no file.
func New(cfg Config) (*Manager, error) {
	if cfg.Store == nil {
		return nil, errors.New("imagegc: Config.Store is nil")
	}
	if err := compose.Check(cfg.Store, reflect.TypeFor[Forgetter]()); err != nil {
		return nil, fmt.Errorf("imagegc: Config.Store: %w", err)
	}
	policy, err := cfg.Policy.validated()
	if err != nil {
		return nil, fmt.Errorf("imagegc: Config.Policy: %w", err)
	}
	if cfg.Space == nil && *policy.HighPercent < 100 {
		return nil, errors.New("imagegc: Config.Space is nil and Policy.HighPercent is below 100")
	}
	if cfg.Period < 0 {
		return nil, fmt.Errorf("imagegc: Config.Period is negative: %v", cfg.Period)
	}
	if cfg.Period == 0 {
		cfg.Period = defaultPeriod
	}
	if cfg.Pods == nil {
		cfg.Pods = func() ([]*v1.Pod, bool) { return nil, true }
	}
	if cfg.Record == nil {
		cfg.Record = func(runtime.Event) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Manager{cfg: cfg, turn: make(chan struct{}, 1), holds: newHolds()}, nil
}

// notReadyPeriod is the interval between passes until Config.Pods is synced: a full disk may
// prevent pods from starting.
const notReadyPeriod = 10 * time.Second

// Run makes a pass immediately and then every Period. It blocks until ctx is done and returns
// nil. A failed pass is repeated after Period; one before all pods were known, after 10
// seconds. If the policy never removes an image, images are only recorded. A second call
// returns an error.
func (m *Manager) Run(ctx context.Context) error {
	if err := m.ran.Enter("imagegc: Manager"); err != nil {
		return err
	}
	for {
		began := time.Now()
		err := m.once(ctx)
		m.report(err, ctx.Err() != nil)
		period := m.cfg.Period
		if errors.Is(err, ErrNotSynced) {
			period = min(period, notReadyPeriod)
		}
		timer := time.NewTimer(max(period-time.Since(began), 0))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// Policy returns the policy with its defaults filled in. The caller must not modify its slices.
func (m *Manager) Policy() Policy {
	policy, _ := m.cfg.Policy.validated() // New returned the error
	return policy
}

func (m *Manager) once(ctx context.Context) error {
	if policy := m.Policy(); policy.idle() {
		_, err := m.DryRun(ctx)
		return err
	}
	_, err := m.Collect(ctx)
	return err
}

// report logs failed passes, and the first one that succeeds after them. From the second
// consecutive failure on it records an event (rule ig-3).
func (m *Manager) report(err error, ended bool) {
	switch {
	case ended || errors.Is(err, ErrNotSynced):
	case err == nil:
		if m.failures > 0 {
			m.cfg.Logger.Info("Image garbage collection recovered", "failures", m.failures)
		}
		m.failures = 0
	default:
		m.failures++
		m.cfg.Logger.Error("Image garbage collection failed; will retry", "failures", m.failures, "err", err)
		if m.failures > 1 {
			m.event("ImageGCFailed", err.Error())
		}
	}
}

func (m *Manager) event(reason, message string) {
	m.cfg.Record(runtime.Event{Object: m.cfg.Node, Type: v1.EventTypeWarning, Reason: reason, Message: message})
}
