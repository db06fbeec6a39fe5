package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/runtime"
)

// Periods of a RuntimeHealth.
const (
	healthPeriod    = 5 * time.Second  // between two checks
	readyPeriod     = 10 * time.Second // the same while runtime and network are ready
	healthThreshold = 30 * time.Second // the age of the last result at which the runtime is down
)

// A RuntimeHealth has the result of the periodic checks of a runtime, so that it can be read
// without waiting for the runtime. The runtime is checked every 5 seconds, or every 10 while it
// and its network are ready, and is down if no check has completed for 30 seconds. Safe for
// concurrent use; Runtime and Network do not block.
type RuntimeHealth struct {
	checker runtime.Checker
	ran     runonce.Guard

	// changed, of capacity 1, is signaled when a check of run fails after one that succeeded, and
	// when one succeeds after one that failed. First and Check do not signal it: pods are listed
	// at the start anyway.
	changed chan struct{}

	// mu guards the fields below.
	mu        sync.Mutex
	completed time.Time // when the last check completed; zero: none has
	last      runtime.Health
	err       error // of the last check, nil if it completed
}

func newRuntimeHealth(checker runtime.Checker) *RuntimeHealth {
	return &RuntimeHealth{checker: checker, changed: make(chan struct{}, 1)}
}

// First checks the runtime once, for at most 1 second. Until a check has completed, the network
// is not ready; calling First before pods are synced spares them a wait for the next check.
func (h *RuntimeHealth) First(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	h.record(h.checker.Check(ctx))
}

// Check checks the runtime once, for at most 30 seconds.
func (h *RuntimeHealth) Check(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, healthThreshold)
	defer cancel()
	h.record(h.checker.Check(ctx))
}

// run checks the runtime periodically until ctx is done, and returns nil then. A second call
// returns an error. Each check is canceled after healthThreshold.
func (h *RuntimeHealth) run(ctx context.Context) error {
	if err := h.ran.Enter("agent: RuntimeHealth"); err != nil {
		return err
	}
	limit := timeLimit{parent: ctx, d: healthThreshold}
	defer limit.release()
	h.mu.Lock()
	down := h.err != nil
	h.mu.Unlock()
	for {
		due := time.Now()
		result, err := h.checker.Check(limit.begin())
		if limit.end() && err != nil {
			err = context.DeadlineExceeded
		}
		h.record(result, err)
		if (err != nil) != down {
			down = !down
			select {
			case h.changed <- struct{}{}:
			default: // one is pending
			}
		}
		due = due.Add(healthPeriod)
		if err == nil && result.Runtime == nil && result.Network == nil {
			due = due.Add(readyPeriod - healthPeriod)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(due)):
		}
	}
}

func (h *RuntimeHealth) record(result runtime.Health, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
	if err == nil {
		h.completed, h.last = time.Now(), result
	}
}

// Runtime returns nil if the runtime responds and can start containers, otherwise the reason.
func (h *RuntimeHealth) Runtime() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	age := time.Since(h.completed)
	switch {
	case h.completed.IsZero() && h.err == nil:
		return errors.New("container runtime status check may not have completed yet")
	case h.completed.IsZero():
		return fmt.Errorf("container runtime has not responded yet: %w", h.err)
	case age >= healthThreshold && h.err == nil: // a check is in progress
		return fmt.Errorf("container runtime is down: last response %v ago", age.Round(time.Second))
	case age >= healthThreshold:
		return fmt.Errorf("container runtime is down: last response %v ago: %w", age.Round(time.Second), h.err)
	case h.last.Runtime != nil:
		return fmt.Errorf("container runtime not ready: %w", h.last.Runtime)
	}
	return nil
}

// Network returns nil if the network of pods was ready at the last completed check, otherwise
// the reason.
func (h *RuntimeHealth) Network() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.completed.IsZero() {
		return errors.New("network state unknown")
	}
	return h.last.Network
}
