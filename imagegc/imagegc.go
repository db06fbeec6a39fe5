package imagegc

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

// Store is where the images are; a [runtime.ImageStore] is one. Its methods are
// called one after the other, and may block.
type Store interface {
	Images(ctx context.Context) ([]runtime.Image, error)
	ImageUses(ctx context.Context) ([]runtime.ImageUse, error)
	RemoveImage(ctx context.Context, image runtime.Image) error
}

// A Config says what a [Manager] works with.
type Config struct {
	// Store of the images. Required.
	Store Store

	// Space returns how full their file system is, measured anew with each call:
	// it is asked after each image that was removed. Required, unless the policy
	// has 100 for HighPercent.
	Space func(ctx context.Context) (Space, error)

	// Pods returns the pods that run here or may yet start, whose images stay
	// although no container of theirs is there. Nil: what runs counts alone.
	Pods func() []*v1.Pod

	// Ready reports whether all is known that Pods will return. Until then no image
	// goes: after the machine was started anew, nothing runs yet. Nil: at once.
	Ready func() bool

	// Policy says what may go.
	Policy Policy

	// Rank orders what may go, the first to go first. Nil: [Rank].
	Rank func(a, b *Record) int

	// Period between two passes. 0: 5 minutes (ig-3, ig-9).
	Period time.Duration

	// Path of the record of when images were first seen and last used, over
	// restarts of the agent; its directory has to exist. Empty: there is none, and
	// the ages of images begin anew with the agent, as the kubelet's (ig-6).
	Path string

	// Holders returns what else holds the space, for the error that no image is
	// left to remove (F-32). It may take a while. Nil: that is not known.
	Holders func(ctx context.Context) ([]Holder, error)

	// Node is whom events are about. Record takes them; it must not block. Nil:
	// nobody reads them.
	Node   v1.ObjectReference
	Record func(runtime.Event)

	// SumOfSizes counts the size of each image that was removed as freed, instead of
	// looking at the file system: the kubelet's way (ig-13), which counts what images
	// share as often as it is shared, and stops too early.
	SumOfSizes bool

	// Logger; nil discards.
	Logger *slog.Logger

	// Hooks observe.
	Hooks Hooks
}

// Hooks observe a [Manager]; any may be nil. They are called by who makes the pass,
// and must not call the Manager.
type Hooks struct {
	// Removed: an image was removed (kubelet_image_garbage_collected_total{reason},
	// ig-17).
	Removed func(RemovedInfo)

	// Passed: a pass has ended.
	Passed func(PassedInfo)

	// Detected: these are the images there are, by ID, as listed after before. Who
	// keeps something by image lets go of the rest (cri.Runtime.ForgetImages).
	Detected func(present []string, before time.Time)

	// Failed: the record of Config.Path could not be read or written.
	Failed func(err error)
}

// RemovedInfo tells of an image that was removed.
type RemovedInfo struct {
	Record Record
	Reason string // "space" or "age"; of a denied one "denied"

	// Freed is by how much the free space has grown with it; negative if it has
	// shrunk. Known: it was measured.
	Freed int64
	Known bool
}

// PassedInfo tells of a pass.
type PassedInfo struct {
	Report   Report
	Err      error
	Duration time.Duration
}

const defaultPeriod = 5 * time.Minute

// A Manager looks after the images of a node.
type Manager struct {
	cfg Config
	ran runonce.Guard

	// turn is held by who makes a pass; it guards the fields below it.
	turn     chan struct{}
	records  []Record
	since    time.Time // of the first pass on this node (ig-10)
	loaded   bool
	failures int // passes in a row that failed

	guard guard

	mu     sync.Mutex      // guards the fields below
	images []runtime.Image // as last listed; replaced, never changed
	listed time.Time
	names  index // of images; nil: nobody has asked for one
}

// New returns a Manager. It starts nothing and reads nothing.
func New(cfg Config) (*Manager, error) {
	if cfg.Store == nil {
		return nil, errors.New("imagegc: Config.Store is nil")
	}
	policy, err := cfg.Policy.validated()
	if err != nil {
		return nil, fmt.Errorf("imagegc: Config.Policy: %w", err)
	}
	if cfg.Space == nil && *policy.HighPercent < 100 {
		return nil, errors.New("imagegc: Config.Space is nil, and Policy.HighPercent below 100")
	}
	if cfg.Period < 0 {
		return nil, fmt.Errorf("imagegc: Config.Period is negative: %v", cfg.Period)
	}
	if cfg.Period == 0 {
		cfg.Period = defaultPeriod
	}
	if cfg.Pods == nil {
		cfg.Pods = func() []*v1.Pod { return nil }
	}
	if cfg.Ready == nil {
		cfg.Ready = func() bool { return true }
	}
	if cfg.Record == nil {
		cfg.Record = func(runtime.Event) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Manager{cfg: cfg, turn: make(chan struct{}, 1), guard: newGuard()}, nil
}

// unready is how long Run waits for all pods to be known: who starts on a disk that
// is full already should not have to wait for a period.
const unready = 10 * time.Second

// Run makes a pass at once, and one each Period, until ctx ends; it then returns
// nil. A pass that fails is made again at its time (ig-3), one that came before all
// pods were known some seconds later. A policy that removes nothing has the images
// watched only (ig-2, ig-9). A second call returns an error.
func (m *Manager) Run(ctx context.Context) error {
	if err := m.ran.Enter("imagegc: Manager"); err != nil {
		return err
	}
	for {
		began := time.Now()
		err := m.once(ctx)
		m.tell(err, ctx.Err() != nil)
		period := m.cfg.Period
		if errors.Is(err, ErrNotReady) {
			period = min(period, unready)
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

// Policy returns the policy with its defaults filled in. Its slices must not be changed.
func (m *Manager) Policy() Policy {
	policy, _ := m.cfg.Policy.validated() // New has returned its error
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

// tell says how a pass of Run went, when that is news: a first failure is logged,
// from the second in a row on there are events, and so is the end of it (ig-3).
func (m *Manager) tell(err error, ended bool) {
	switch {
	case ended || errors.Is(err, ErrNotReady):
	case err == nil:
		if m.failures > 0 {
			m.cfg.Logger.Info("image garbage collection works again", "failures", m.failures)
		}
		m.failures = 0
	default:
		m.failures++
		m.cfg.Logger.Error("image garbage collection failed", "failures", m.failures, "err", err)
		if m.failures > 1 {
			m.event("ImageGCFailed", err.Error())
		}
	}
}

func (m *Manager) event(reason, message string) {
	m.cfg.Record(runtime.Event{Object: m.cfg.Node, Type: v1.EventTypeWarning, Reason: reason, Message: message})
}
