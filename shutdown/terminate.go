package shutdown

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// publishTimeout bounds the wait until pods are recorded as not ready: an unavailable status
// sink must not take the time of the pods.
const publishTimeout = 5 * time.Second

// terminate terminates the pods group by group and waits for their final statuses. It returns
// as soon as ctx is done.
func (m *Manager) terminate(ctx context.Context, times *schedule) {
	started := time.Now()
	m.saveTimes(started, time.Time{})
	terminated := map[types.UID]bool{}
	var late []*v1.Pod
	for i := range m.cfg.Policy.sorted() {
		var pods []*v1.Pod
		for _, pod := range m.cfg.Pods.Running() {
			// Including pods that were added to an earlier group since.
			if !terminated[pod.UID] && groupOf(m.cfg.Policy.sorted(), pod) <= i {
				terminated[pod.UID] = true
				pods = append(pods, pod)
			}
		}
		times.begin(len(pods) == 0)
		if len(pods) == 0 {
			continue
		}
		late = append(late, m.terminateGroup(ctx, pods, times)...)
		if ctx.Err() != nil {
			return
		}
	}
	err := m.flush(ctx, times)
	if table, _ := times.current(); err == nil && len(late) > 0 && table.policy.Flush > 0 {
		m.awaitLate(ctx, late, times)
		err = m.flush(ctx, times)
	}
	if ctx.Err() != nil {
		return
	}
	m.saveTimes(started, time.Now())
	m.cfg.Hooks.Ended(EndedInfo{Pods: len(terminated), Duration: time.Since(started), FlushErr: err})
}

// awaitLate waits for pods that outlived their grace period: they are killed, and their final
// status follows soon after.
func (m *Manager) awaitLate(ctx context.Context, late []*v1.Pod, times *schedule) {
	started := time.Now()
	by := func(t timetable) time.Time { return earlier(started.Add(t.policy.Flush), t.last) }
	var wg sync.WaitGroup
	for _, pod := range late {
		wg.Go(func() { // the error was already logged
			_ = times.try(ctx, by, func(ctx context.Context, _ time.Time) error { return m.cfg.Pods.AwaitCleaned(ctx, pod) })
		})
	}
	wg.Wait()
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// terminateGroup terminates pods. It returns when they have terminated or their time is up, with
// those that have not.
func (m *Manager) terminateGroup(ctx context.Context, pods []*v1.Pod, times *schedule) (late []*v1.Pod) {
	m.drain(ctx, pods, times)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, pod := range pods {
		wg.Go(func() {
			if m.kill(ctx, pod, times) != nil {
				mu.Lock()
				defer mu.Unlock()
				late = append(late, pod)
			}
		})
	}
	wg.Wait()
	return late
}

// drain publishes that the pods are not ready, and waits for the propagation.
func (m *Manager) drain(ctx context.Context, pods []*v1.Pod, times *schedule) {
	if m.cfg.Statuses == nil {
		return
	}
	m.State.drain(pods)
	limit := time.Now().Add(publishTimeout)
	soon := func(t timetable) time.Time { return earlier(limit, t.until) }
	err := times.try(ctx, soon, func(ctx context.Context, _ time.Time) error {
		err := m.cfg.Statuses.Report(ctx, pods)
		if table, _ := times.current(); err == nil && table.policy.Propagation > 0 {
			err = m.cfg.Statuses.Flush(ctx)
		}
		return err
	})
	if err != nil {
		m.cfg.Logger.Warn("Failed to publish that pods are not ready; they are terminated nevertheless", "err", err)
	}
	times.drained()
	_ = times.try(ctx, byReady, func(ctx context.Context, _ time.Time) error {
		<-ctx.Done()
		return ctx.Err()
	})
}

// kill kills a pod and waits until its volumes are unmounted.
func (m *Manager) kill(ctx context.Context, pod *v1.Pod, times *schedule) error {
	started := time.Now()
	var grace int64
	err := times.try(ctx, byUntil, func(ctx context.Context, until time.Time) error {
		grace = gracePeriodSeconds(pod, time.Until(until).Round(time.Second)) // the remaining time may be slightly less than a second
		return m.cfg.Pods.Kill(ctx, Kill{Pod: pod, GracePeriodSeconds: grace})
	})
	if err == nil {
		err = times.try(ctx, byUntil, func(ctx context.Context, _ time.Time) error { return m.cfg.Pods.AwaitCleaned(ctx, pod) })
	}
	if err != nil {
		m.cfg.Logger.Error("Pod did not terminate in time during the shutdown; the next group follows", "pod", pod.Namespace+"/"+pod.Name, "podUID", pod.UID, "gracePeriodSeconds", grace, "err", err)
	}
	m.cfg.Hooks.Killed(KilledInfo{Pod: pod, GracePeriodSeconds: grace, Duration: time.Since(started), Err: err})
	return err
}

// flush waits until the final statuses are recorded or the total time is up. After the machine
// has stopped they cannot be recorded.
func (m *Manager) flush(ctx context.Context, times *schedule) error {
	if m.cfg.Statuses == nil {
		return nil
	}
	err := times.try(ctx, byLast, func(ctx context.Context, _ time.Time) error { return m.cfg.Statuses.Flush(ctx) })
	if err != nil {
		m.cfg.Logger.Error("Failed to record the final pod statuses before the machine stops; they are lost", "err", err)
	}
	return err
}
