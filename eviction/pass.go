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

// A Result describes a pass.
type Result struct {
	// Plan of the pass. Nil if the measurement failed.
	Plan *Plan
	// After is the plan after Steps were taken. Nil if none was.
	After *Plan
	// Steps that were taken, including failed ones.
	Steps []string
	// RankedAt is when the pods of the ranking of After, or of Plan if that is nil, were about to be
	// evicted. Zero if none was. The age of a measurement is that since its At
	// (kubelet_eviction_stats_age_seconds).
	RankedAt time.Time
	// Evicted are the evictions that were carried out.
	Evicted []Victim
	// Failed are the evictions whose kill failed.
	Failed []Victim
	// Duration of the pass.
	Duration time.Duration
}

// Pass evaluates the node once and carries out the plan. It returns when the pods that it
// evicted have terminated. The error is the error of the measurement; the result has a plan
// nevertheless if a part could be measured. Errors of the actions are logged.
func (m *Manager) Pass(ctx context.Context) (result Result, err error) {
	if m.cfg.Policy.idle() {
		return result, nil
	}
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return result, ctx.Err()
	}
	began := time.Now()
	result, err = m.pass(ctx)
	result.Duration = time.Since(began)
	m.cfg.Hooks.Passed(result, err)
	return result, err
}

func (m *Manager) pass(ctx context.Context) (result Result, err error) {
	plan, in, missing, err := m.plan(ctx)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, missing) }()
	m.refreshNotifiers(in)
	result.Plan = plan
	m.save(plan)

	for i := range plan.Local {
		if ctx.Err() != nil {
			break
		}
		m.evict(ctx, plan.Local[i], &result)
	}
	if len(result.Evicted) > 0 || plan.Chosen == nil || ctx.Err() != nil {
		return result, nil
	}
	m.cfg.Record(runtime.Event{
		Object: m.cfg.Node, Type: v1.EventTypeWarning, Reason: "EvictionThresholdMet",
		Message: fmt.Sprintf("Attempting to reclaim %s", plan.Chosen.Threshold.Signal.Resource()),
	})
	if plan, err = m.reclaim(ctx, plan, &result); err != nil || plan.Chosen == nil {
		return result, err
	}
	result.RankedAt = time.Now()
	m.evictRanked(ctx, plan, &result)
	return result, nil
}

// plan measures the node and returns the plan. Pods are measured only if the plan depends on
// their usage. missing is the error of the parts that could not be measured.
func (m *Manager) plan(ctx context.Context) (plan *Plan, in Inputs, missing, err error) {
	pods := m.cfg.Pods.Running()
	for withPods := m.cfg.Policy.limitsAny(pods); ; withPods = true {
		got, err := m.measure(ctx, withPods)
		if err != nil {
			return nil, in, nil, err
		}
		in, missing = m.inputs(ctx, pods, got)
		if plan = in.Plan(); withPods || plan.Chosen == nil {
			return plan, in, missing, nil
		}
	}
}

// inputs returns the inputs of a plan. missing is the error of the parts that could not be
// measured.
func (m *Manager) inputs(ctx context.Context, pods []*v1.Pod, got measurement) (in Inputs, missing error) {
	in = Inputs{
		Policy: m.cfg.Policy, Now: time.Now(), Pods: pods,
		Summary: got.summary, Partial: got.partial, Memory: got.memory,
	}
	if err := m.detectLayout(ctx, got); err != nil {
		in.Policy, got.missing = in.Policy.withoutDisks(), errors.Join(got.missing, err)
	} else {
		in.layout = m.layout
	}
	if m.cfg.Disks != nil && in.layout != nil && *in.layout == splitImageFS {
		in.ImageBytes = make(map[types.UID]int64, len(pods))
		for _, pod := range pods {
			in.ImageBytes[pod.UID] = m.cfg.Disks.ImageBytes(ctx, pod)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	in.Last = m.last
	for uid, until := range m.backoff {
		if !in.Now.Before(until) || !slices.ContainsFunc(pods, func(p *v1.Pod) bool { return p.UID == uid }) {
			delete(m.backoff, uid)
			continue
		}
		in.KillBackoff = append(in.KillBackoff, uid)
	}
	slices.Sort(in.KillBackoff)
	return in, got.missing
}

// detectLayout sets m.layout once. A partial summary does not suffice.
func (m *Manager) detectLayout(ctx context.Context, got measurement) error {
	if m.layout != nil {
		return nil
	}
	var found layout
	var err error
	switch {
	case m.cfg.Disks != nil:
		found, err = guarded(ctx, &m.layoutCall, m.cfg.Timeout, func(ctx context.Context) (layout, error) {
			root, images, layers, err := m.cfg.Disks.Devices(ctx)
			return layoutByDevice(root, images, layers), err
		})
	case got.partial:
		err = errors.New("summary is incomplete")
	default:
		found = layoutByStats(got.summary)
	}
	if err != nil {
		return fmt.Errorf("eviction: file system layout: %w", err)
	}
	m.layout = &found
	return nil
}

// save stores the plan for the next pass and the conditions, and reports the plan.
func (m *Manager) save(plan *Plan) {
	m.mu.Lock()
	m.last, m.conditions = plan, plan.Conditions
	m.mu.Unlock()
	for _, i := range plan.Invalid {
		m.cfg.Logger.Warn("Ignored an impossible measurement", "signal", i.Signal, "reason", i.Err)
	}
	m.cfg.Hooks.Planned(plan)
}

// reclaim takes the steps of the plan until no pod must be evicted, and returns the plan
// after them. It evaluates measurements that are newer than the step, and waits up to 15
// seconds for one.
func (m *Manager) reclaim(ctx context.Context, plan *Plan, result *Result) (*Plan, error) {
	remeasure := func() error {
		done := time.Now()
		for waited := time.Duration(0); ; waited += remeasurePoll {
			got, err := m.measure(ctx, true)
			if err != nil {
				return err
			}
			result.After = plan.after(got.summary, got.memory, got.partial)
			if !result.After.outdated(plan, done) || waited >= remeasureWait {
				return nil
			}
			if err := pause.For(ctx, remeasurePoll); err != nil {
				return err
			}
		}
	}
	for _, step := range plan.Steps {
		reclaim := m.reclaimer(step)
		if reclaim == nil {
			continue
		}
		if err := reclaim(ctx); err != nil && ctx.Err() == nil {
			m.cfg.Logger.Warn("Failed to reclaim disk space; continuing with the next step", "step", step, "err", err)
		}
		result.Steps = append(result.Steps, step)
		if err := remeasure(); err != nil {
			return nil, err
		}
		if result.After.Chosen == nil {
			return result.After, nil
		}
	}
	if len(result.Steps) == 0 {
		return plan, nil
	}
	return result.After, nil
}

// reclaimer returns the method of a step; nil without Disks.
func (m *Manager) reclaimer(s string) func(ctx context.Context) error {
	switch {
	case m.cfg.Disks == nil:
		return nil
	case s == deleteUnusedContainers:
		return m.cfg.Disks.DeleteUnusedContainers
	default:
		return m.cfg.Disks.DeleteUnusedImages
	}
}

// evictRanked evicts pods in rank order until the victims of plan have terminated. If a kill fails,
// the next pod is evicted.
func (m *Manager) evictRanked(ctx context.Context, plan *Plan, result *Result) {
	next := 0
	for len(result.Evicted) < plan.Victims && ctx.Err() == nil {
		var wave []Victim
		for ; next < len(plan.Ranking) && len(wave) < plan.Victims-len(result.Evicted); next++ {
			if c := &plan.Ranking[next]; c.Exempt != "" {
				level := slog.LevelWarn
				if c.Exempt == exemptUnmeasured {
					level = slog.LevelDebug // there may be many, and the pass returns an error
				}
				m.cfg.Logger.Log(ctx, level, "Skipped exempt pod for eviction", "pod", name(c.Pod), "podUID", c.Pod.UID, "reason", c.Exempt)
				continue
			}
			wave = append(wave, plan.Victim(next))
		}
		if len(wave) == 0 {
			m.cfg.Logger.Warn("No pod left to evict; will evaluate again in the next pass", "signal", plan.Chosen.Threshold.Signal, "pods", len(plan.Ranking))
			return
		}
		m.evictAll(ctx, wave, result)
	}
}

// evictAll evicts pods concurrently.
func (m *Manager) evictAll(ctx context.Context, wave []Victim, result *Result) {
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

// evict records the event and kills the pod, unless it is exempt.
func (m *Manager) evict(ctx context.Context, v Victim, result *Result) {
	log := m.cfg.Logger.With("pod", name(v.Pod), "podUID", v.Pod.UID, "signal", v.Signal)
	if v.Exempt != "" {
		log.Warn("Skipped exempt pod for eviction", "reason", v.Exempt)
		return
	}
	m.cfg.Record(v.Event())
	if err := m.cfg.Pods.Evict(ctx, v); err != nil {
		log.Warn("Failed to kill evicted pod; will evict the next one", "err", err)
		result.Failed = append(result.Failed, v)
		m.mu.Lock()
		m.backoff[v.Pod.UID] = time.Now().Add(m.cfg.Policy.KillBackoff)
		m.mu.Unlock()
		return
	}
	log.Info("Evicted pod", "message", v.Message)
	result.Evicted = append(result.Evicted, v)
}

func name(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }
