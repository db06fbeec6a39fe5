package podworker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/runtime"
)

// HealthConfig configures a [Health].
type HealthConfig struct {
	// Checker reports the state of the runtime. Required. The context of a check is
	// canceled when the check has taken Threshold.
	Checker runtime.Checker

	// Period between two questions. Zero: 5 seconds.
	Period time.Duration

	// Threshold is how old the last answer may be before the runtime counts
	// as down. Zero: 30 seconds.
	Threshold time.Duration
}

// A Health keeps asking a runtime how it is (sl-3 … sl-5), so that others can
// tell without waiting for an answer that may not come.
type Health struct {
	cfg HealthConfig
	ran runonce.Guard

	// mu guards the fields below.
	mu       sync.Mutex
	answered time.Time // when the last answer came; zero: none did
	last     runtime.Health
	err      error // of the last question, nil if it was answered
}

// NewHealth returns a Health for cfg, or an error if it lacks the Checker.
func NewHealth(cfg HealthConfig) (*Health, error) {
	if cfg.Checker == nil {
		return nil, errors.New("podworker: HealthConfig.Checker is nil")
	}
	if cfg.Period == 0 {
		cfg.Period = 5 * time.Second
	}
	if cfg.Threshold == 0 {
		cfg.Threshold = 30 * time.Second
	}
	return &Health{cfg: cfg}, nil
}

// First asks once, for a second at most. Called before pods are worked on, it
// spares those that are there from the start a wait for the next look: until
// there is an answer the network counts as not ready.
func (h *Health) First(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	h.Check(ctx)
}

// Run checks the runtime each Period until ctx is done, and returns nil then. A
// second call returns an error.
func (h *Health) Run(ctx context.Context) error {
	if err := h.ran.Enter("podworker: Health"); err != nil {
		return err
	}
	ticker := time.NewTicker(h.cfg.Period)
	defer ticker.Stop()
	limit := timeLimit{parent: ctx, d: h.cfg.Threshold}
	defer limit.release()
	for {
		answer, err := h.cfg.Checker.Check(limit.begin())
		if limit.end() && err != nil {
			err = context.DeadlineExceeded
		}
		h.record(answer, err)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Check checks the runtime once, for at most Threshold.
func (h *Health) Check(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Threshold)
	defer cancel()
	h.record(h.cfg.Checker.Check(ctx))
}

func (h *Health) record(answer runtime.Health, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
	if err == nil {
		h.answered, h.last = time.Now(), answer
	}
}

// Runtime returns nil if the runtime answers and can start containers, else
// what is wrong.
func (h *Health) Runtime() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.answered.IsZero() && h.err == nil:
		return errors.New("container runtime status check may not have completed yet")
	case h.answered.IsZero():
		return fmt.Errorf("container runtime has not answered yet: %w", h.err)
	case time.Since(h.answered) >= h.cfg.Threshold && h.err == nil: // the next check has not returned yet
		return fmt.Errorf("container runtime is down: last answer %v ago", time.Since(h.answered).Round(time.Second))
	case time.Since(h.answered) >= h.cfg.Threshold:
		return fmt.Errorf("container runtime is down: last answer %v ago: %w", time.Since(h.answered).Round(time.Second), h.err)
	case h.last.Runtime != nil:
		return fmt.Errorf("container runtime not ready: %w", h.last.Runtime)
	}
	return nil
}

// Network returns nil if the runtime's last answer was that pods get a network,
// else what is wrong.
func (h *Health) Network() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.answered.IsZero() {
		return errors.New("network state unknown")
	}
	return h.last.Network
}
