package eviction

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/pause"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Result tells what a pass did.
type Result struct {
	// Plan is what was decided; nil if it could not be made.
	Plan *Plan
	// After is the second look, when Steps were done; nil: there was none.
	After *Plan
	// Steps that were done, whether they failed or not.
	Steps []Step
	// Evicted are the pods that have ended by it.
	Evicted []Eviction
	// Failed are those whose kill failed.
	Failed []Eviction
}

// Pass looks at the node once, and does what has to be done, in the kubelet's
// order (section 2.2). It returns when the pods that it evicted have ended. The
// error is of the look, with a plan if that was by a part of the figures; what failed
// of what was done is in the result.
func (m *Manager) Pass(ctx context.Context) (result Result, err error) {
	if m.cfg.Policy.idle() {
		return result, nil // ev-15
	}
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return result, ctx.Err()
	}
	began := time.Now()
	result, err = m.pass(ctx)
	m.cfg.Hooks.Passed(PassInfo{Result: result, Err: err, Took: time.Since(began)})
	return result, err
}

func (m *Manager) pass(ctx context.Context) (result Result, err error) {
	in, missing, err := m.inputs(ctx)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, missing) }()
	m.refreshNotifiers(in)
	plan := in.Plan()
	result.Plan = plan
	m.save(plan)

	for i := range plan.Local {
		if ctx.Err() != nil {
			break
		}
		m.evict(ctx, plan.Local[i], &result)
	}
	if len(result.Evicted) > 0 || plan.Chosen == nil || ctx.Err() != nil {
		return result, nil // ev-23, ev-24
	}
	m.cfg.Record(runtime.Event{
		Object: m.cfg.Node, Type: v1.EventTypeWarning, Reason: "EvictionThresholdMet",
		Message: fmt.Sprintf("Attempting to reclaim %s", plan.Chosen.Threshold.Signal.Resource()),
	})
	if plan, err = m.reclaim(ctx, plan, &result); err != nil || plan.Chosen == nil {
		return result, err
	}
	m.ages(plan)
	m.evictRanked(ctx, plan, &result)
	return result, nil
}

// inputs gathers what a plan is made from, and tells what is missing of it.
func (m *Manager) inputs(ctx context.Context) (in Inputs, missing, err error) {
	pods := m.cfg.Pods()
	got, err := m.measure(ctx)
	if err != nil {
		return in, nil, err
	}
	in = Inputs{
		Policy: m.cfg.Policy, Now: time.Now(), Summary: got.summary, Partial: got.partial, Memory: got.memory, MachineMemory: m.cfg.MachineMemory,
		Pods: pods, Random: m.cfg.Random(),
	}
	if err := m.knowLayout(ctx, got); err != nil {
		if m.noSplit() {
			return in, nil, err
		}
		in.Policy, got.missing = in.Policy.withoutDisks(), errors.Join(got.missing, err)
	} else {
		in.Layout = *m.layout
	}
	for _, pod := range pods {
		if m.cfg.Spare != nil {
			if spare := m.cfg.Spare(pod); spare != nil {
				if in.Spared == nil {
					in.Spared = map[types.UID]Spare{}
				}
				in.Spared[pod.UID] = *spare
			}
		}
		if m.cfg.ImageBytes != nil && in.Layout == SplitImageFS {
			if in.ImageBytes == nil {
				in.ImageBytes = map[types.UID]int64{}
			}
			in.ImageBytes[pod.UID] = m.cfg.ImageBytes(ctx, pod)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	in.State = m.state
	for uid, until := range m.held {
		if !in.Now.Before(until) || !slices.ContainsFunc(pods, func(p *v1.Pod) bool { return p.UID == uid }) {
			delete(m.held, uid)
			continue
		}
		in.Held = append(in.Held, uid)
	}
	slices.Sort(in.Held)
	return in, got.missing, nil
}

// noSplit reports whether the layout is one that is forbidden (ev-12).
func (m *Manager) noSplit() bool {
	return m.layout != nil && *m.layout == SplitImageFS && m.cfg.Policy.Compat.NoSplitFS
}

// knowLayout finds out once which file systems there are. What is missing in a part of
// a summary does not tell.
func (m *Manager) knowLayout(ctx context.Context, got figures) error {
	if m.layout == nil {
		if m.cfg.Layout == nil && got.partial {
			return errors.New("eviction: file systems: not known yet, by a part of a summary")
		}
		layout := LayoutByStats(got.summary)
		if m.cfg.Layout != nil {
			var err error
			if layout, err = guarded(ctx, &m.layoutCall, m.cfg.SummaryTimeout, m.cfg.Layout); err != nil {
				return fmt.Errorf("eviction: file systems: %w", err)
			}
		}
		m.layout = &layout
	}
	if m.noSplit() {
		return errors.New("eviction: images have a file system of their own, and Compat.NoSplitFS forbids it") // ev-12
	}
	return nil
}

// save keeps what the next pass has to know, and what others ask for (ev-22).
func (m *Manager) save(plan *Plan) {
	m.mu.Lock()
	m.state, m.conditions = plan.State, plan.Conditions
	m.mu.Unlock()
	for _, i := range plan.Invalid {
		m.cfg.Logger.Warn("figures of the node that cannot be true are not acted on", "signal", i.Signal, "why", i.Why)
		m.cfg.Hooks.Invalid(i)
	}
	if !slices.Equal(m.announced, plan.Conditions) {
		m.announced = plan.Conditions
		m.cfg.Hooks.Conditions(slices.Clone(plan.Conditions))
	}
}

// reclaim does what can be done before pods are evicted, and returns what is to
// be done about pods then (ev-26, ev-35). It stops as soon as that is enough
// (F-21), which it knows from figures that are newer than what it did; who
// measures rarely is waited for, 15 seconds at most.
func (m *Manager) reclaim(ctx context.Context, plan *Plan, result *Result) (*Plan, error) {
	look := func() error {
		done := time.Now()
		for waited := time.Duration(0); ; waited += newsPoll {
			got, err := m.measure(ctx)
			if err != nil {
				return err
			}
			result.After = plan.after(got.summary, got.memory, got.partial)
			if !result.After.old(plan, done) || waited >= newsWait {
				return nil
			}
			if err := pause.For(ctx, newsPoll); err != nil {
				return err
			}
		}
	}
	for _, step := range plan.Steps {
		do := m.step(step)
		if do == nil {
			continue
		}
		if err := do(ctx); err != nil && ctx.Err() == nil {
			m.cfg.Logger.Warn("freeing what pods do not need failed", "step", step, "err", err)
		}
		result.Steps = append(result.Steps, step)
		if m.cfg.Policy.Compat.AllSteps {
			continue
		}
		if err := look(); err != nil {
			return nil, err
		}
		if result.After.Chosen == nil {
			return result.After, nil
		}
	}
	switch {
	case len(result.Steps) == 0:
		return plan, nil
	case result.After == nil:
		if err := look(); err != nil {
			return nil, err
		}
	}
	return result.After, nil
}

func (m *Manager) step(s Step) func(ctx context.Context) error {
	switch {
	case s == UnusedContainers && m.cfg.Containers != nil:
		return func(ctx context.Context) error { return m.cfg.Containers.CollectGarbage(ctx, m.cfg.GCPolicy()) }
	case s == UnusedImages:
		return m.cfg.Images
	default:
		return nil
	}
}

// ages tells how old the figures are that pods are evicted by (ev-29).
func (m *Manager) ages(plan *Plan) {
	for _, met := range plan.Met {
		if met.acts() && !met.At.IsZero() {
			m.cfg.Hooks.StatsAge(met.Threshold.Signal, time.Since(met.At))
		}
	}
}

// evictRanked ends as many pods of the ranking as are needed, in its order. For
// one whose kill fails the next goes (ev-27, F-22).
func (m *Manager) evictRanked(ctx context.Context, plan *Plan, result *Result) {
	next := 0
	for len(result.Evicted) < plan.Victims && ctx.Err() == nil {
		var wave []Eviction
		for ; next < len(plan.Ranking) && len(wave) < plan.Victims-len(result.Evicted); next++ {
			if refused := plan.Ranking[next].Refused; refused != "" {
				level := slog.LevelWarn
				if plan.Ranking[next].Unmeasured {
					level = slog.LevelDebug // it may be all of them, and the pass says so
				}
				m.cfg.Logger.Log(ctx, level, "a pod that would be evicted is not", "pod", name(plan.Ranking[next].Pod), "uid", plan.Ranking[next].Pod.UID, "why", refused)
				continue
			}
			wave = append(wave, plan.Eviction(next))
		}
		if len(wave) == 0 {
			m.cfg.Logger.Warn("nobody is left to evict", "signal", plan.Chosen.Threshold.Signal, "pods", len(plan.Ranking))
			return
		}
		m.evictAll(ctx, wave, result)
	}
}

// evictAll ends pods side by side.
func (m *Manager) evictAll(ctx context.Context, wave []Eviction, result *Result) {
	if len(wave) == 1 {
		m.evict(ctx, wave[0], result)
		return
	}
	results := make([]Result, len(wave))
	var wg sync.WaitGroup
	for i := range wave {
		wg.Go(func() { m.evict(ctx, wave[i], &results[i]) })
	}
	wg.Wait()
	for _, r := range results {
		result.Evicted, result.Failed = append(result.Evicted, r.Evicted...), append(result.Failed, r.Failed...)
	}
}

// evict ends one pod (section 2.7).
func (m *Manager) evict(ctx context.Context, e Eviction, result *Result) {
	log := m.cfg.Logger.With("pod", name(e.Pod), "uid", e.Pod.UID, "signal", e.Signal)
	if e.Refused != "" {
		log.Warn("a pod that would be evicted is not", "why", e.Refused)
		return
	}
	m.cfg.Record(e.Event())
	err := m.cfg.Kill(ctx, e)
	if err != nil {
		log.Warn("a pod that is evicted does not end", "err", err)
	}
	if err != nil && !m.cfg.Policy.Compat.FailedKillCounts {
		result.Failed = append(result.Failed, e)
		m.mu.Lock()
		m.held[e.Pod.UID] = time.Now().Add(m.cfg.HoldOff)
		m.mu.Unlock()
		m.cfg.Hooks.KillFailed(e, err)
		return
	}
	log.Info("evicted", "message", e.Message)
	result.Evicted = append(result.Evicted, e)
	m.cfg.Hooks.Evicted(e)
}

func name(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }
