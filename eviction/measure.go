package eviction

import (
	"context"
	"errors"
	"fmt"
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// A measurement is the usage of the node and its pods.
type measurement struct {
	summary *statsapi.Summary
	partial bool // the summary is incomplete
	memory  *Observation
	missing error // why a part is missing
}

// measure returns what could be measured of the node, and of its pods if they are needed. It
// returns an error only without a summary.
func (m *Manager) measure(ctx context.Context, pods bool) (got measurement, err error) {
	m.measureStarted()
	defer func() {
		if err != nil {
			m.measureEnded(err)
		} else {
			m.measureEnded(got.missing)
		}
	}()
	got.summary, err = guarded(ctx, &m.summaryCall, m.cfg.Timeout, func(ctx context.Context) (*statsapi.Summary, error) {
		return m.cfg.Summary(ctx, pods)
	})
	if err == nil && got.summary == nil {
		err = errors.New("function returned nil")
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
	memory, err := guarded(ctx, &m.memoryCall, m.cfg.Timeout, m.cfg.Memory)
	if err != nil {
		err = fmt.Errorf("eviction: available memory: %w", err)
		memory, got.missing = Observation{Err: err}, errors.Join(got.missing, err)
	}
	got.memory = &memory
	return got, nil
}

func (m *Manager) measureStarted() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unmeasured.IsZero() {
		m.unmeasured, m.measureErr = time.Now(), errUnfinished
	}
}

func (m *Manager) measureEnded(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.measureErr = err; err == nil {
		m.unmeasured = time.Time{}
	}
}

var errUnfinished = errors.New("measurement has not finished")

// unmeasuredGrace is how much longer than the timeout of one measurement all of them may
// fail before Healthy reports it.
const unmeasuredGrace = time.Minute

// Healthy returns an error if every measurement has failed, in full or in part, or has not
// finished, for Config.Timeout and a minute: pods are then not evicted in time. It
// returns nil before the first pass.
func (m *Manager) Healthy() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unmeasured.IsZero() {
		return nil
	}
	since := time.Since(m.unmeasured)
	if since <= m.cfg.Timeout+unmeasuredGrace {
		return nil
	}
	return fmt.Errorf("eviction: node not measured for %v: %w", since.Round(time.Second), m.measureErr)
}
