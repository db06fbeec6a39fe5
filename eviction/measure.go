package eviction

import (
	"context"
	"errors"
	"fmt"
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// figures are what was measured.
type figures struct {
	summary *statsapi.Summary
	partial bool // the summary is
	memory  *MemoryFigure
	missing error // what could not be had
}

// measure returns what can be had: one part that fails says nothing of the others.
func (m *Manager) measure(ctx context.Context) (got figures, err error) {
	m.measuring()
	defer func() {
		if err != nil {
			m.measured(err)
		} else {
			m.measured(got.missing)
		}
	}()
	got.summary, err = guarded(ctx, &m.summaryCall, m.cfg.SummaryTimeout, func(ctx context.Context) (*statsapi.Summary, error) {
		return m.cfg.Summary(ctx, true)
	})
	if err == nil && got.summary == nil {
		err = errors.New("there is none")
	}
	if err != nil {
		err = fmt.Errorf("eviction: summary: %w", err)
	}
	if err != nil && (got.summary == nil || ctx.Err() != nil) {
		return got, err
	}
	got.partial, got.missing = err != nil, err
	if m.cfg.Memory == nil {
		return got, nil
	}
	memory, err := guarded(ctx, &m.memoryCall, m.cfg.SummaryTimeout, m.cfg.Memory)
	if err != nil {
		err = fmt.Errorf("eviction: available memory: %w", err)
		memory, got.missing = MemoryFigure{Err: err}, errors.Join(got.missing, err)
	}
	got.memory = &memory
	return got, nil
}

// measuring notes that a measurement begins.
func (m *Manager) measuring() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unmeasured.IsZero() {
		m.unmeasured, m.measureErr = time.Now(), errUnfinished
	}
}

// measured notes how a measurement ended.
func (m *Manager) measured(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.measureErr = err; err == nil {
		m.unmeasured = time.Time{}
	}
}

var errUnfinished = errors.New("the measurement has not ended")

// unmeasuredGrace is how much longer than one measurement may take all of them may
// fail until Healthy reports it.
const unmeasuredGrace = time.Minute

// Healthy returns an error if each measurement has failed, in full or in part, or has
// not ended, for Config.SummaryTimeout and a minute: pods are then not evicted that
// should be. It is nil before the first pass.
func (m *Manager) Healthy() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unmeasured.IsZero() {
		return nil
	}
	since := time.Since(m.unmeasured)
	if since <= m.cfg.SummaryTimeout+unmeasuredGrace {
		return nil
	}
	return fmt.Errorf("eviction: node not measured for %v: %w", since.Round(time.Second), m.measureErr)
}
