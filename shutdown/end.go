package shutdown

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// publishTimeout bounds the wait for it to be recorded that pods are not ready: a
// record that cannot be written must not take the pods' time.
const publishTimeout = 5 * time.Second

// end ends the pods, group by group, and waits for their last statuses (sh-7 … sh-12).
// It gives up as soon as ctx ends.
func (m *Manager) end(ctx context.Context, times *schedule) {
	begun := time.Now()
	m.keepTimes(begun, time.Time{})
	ended := map[types.UID]bool{}
	var late []*v1.Pod
	for i, g := range m.cfg.Policy.sorted() {
		var pods []*v1.Pod
		for _, pod := range m.cfg.Pods() {
			// Also those that have come to an earlier group since.
			if !ended[pod.UID] && groupOf(m.cfg.Policy.sorted(), pod) <= i {
				ended[pod.UID] = true
				pods = append(pods, pod)
			}
		}
		g.Period = times.begin(len(pods) == 0)
		if len(pods) == 0 {
			continue // sh-7
		}
		late = append(late, m.endGroup(ctx, g, pods, times)...)
		if ctx.Err() != nil {
			return
		}
	}
	err := m.flush(ctx, times)
	if table, _ := times.look(); err == nil && len(late) > 0 && table.policy.Flush > 0 && m.cfg.Cleaned != nil {
		m.await(ctx, late, times)
		err = m.flush(ctx, times)
	}
	if ctx.Err() != nil {
		return
	}
	m.keepTimes(begun, time.Now())
	m.cfg.Hooks.Ended(EndedInfo{Pods: len(ended), Took: time.Since(begun), FlushErr: err})
}

// await waits for pods that were late: who ignores that he is to end is killed when his
// time is over, and has a last status a moment later.
func (m *Manager) await(ctx context.Context, late []*v1.Pod, times *schedule) {
	begun := time.Now()
	by := func(t timetable) time.Time { return earlier(begun.Add(t.policy.Flush), t.last) }
	var wg sync.WaitGroup
	for _, pod := range late {
		wg.Go(func() { // that it is late has been said
			_ = times.try(ctx, by, func(ctx context.Context, _ time.Time) error { return m.cfg.Cleaned(ctx, pod) })
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

// endGroup ends pods, and returns when they have, or when their time is over, with those
// that have not.
func (m *Manager) endGroup(ctx context.Context, g Group, pods []*v1.Pod, times *schedule) (late []*v1.Pod) {
	begun := time.Now()
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
	m.cfg.Hooks.GroupEnded(GroupInfo{Group: g, Pods: len(pods), Left: len(late), Took: time.Since(begun)})
	return late
}

// drain has it said that the pods are not ready, and waits for those to hear of it who
// send them traffic (F-63).
func (m *Manager) drain(ctx context.Context, pods []*v1.Pod, times *schedule) {
	if m.cfg.Report == nil {
		return
	}
	m.mu.Lock()
	for _, pod := range pods {
		m.draining[pod.UID] = true
	}
	m.mu.Unlock()
	patience := time.Now().Add(publishTimeout)
	soon := func(t timetable) time.Time { return earlier(patience, t.until) }
	err := times.try(ctx, soon, func(ctx context.Context, _ time.Time) error {
		err := m.cfg.Report(ctx, pods)
		if table, _ := times.look(); err == nil && table.policy.Propagation > 0 && m.cfg.Flush != nil {
			err = m.cfg.Flush(ctx)
		}
		return err
	})
	if err != nil {
		m.cfg.Logger.Warn("it is not recorded yet that pods are not ready", "err", err)
	}
	times.told()
	_ = times.try(ctx, byReady, func(ctx context.Context, _ time.Time) error {
		<-ctx.Done()
		return ctx.Err()
	})
}

// kill ends a pod, and waits for its volumes (sh-10).
func (m *Manager) kill(ctx context.Context, pod *v1.Pod, times *schedule) error {
	begun := time.Now()
	var grace int64
	err := times.try(ctx, byUntil, func(ctx context.Context, until time.Time) error {
		grace = Grace(pod, time.Until(until).Round(time.Second)) // it may be a moment short
		return m.cfg.Kill(ctx, Kill{Pod: pod, GracePeriodSeconds: grace})
	})
	if err == nil && m.cfg.Cleaned != nil {
		err = times.try(ctx, byUntil, func(ctx context.Context, _ time.Time) error { return m.cfg.Cleaned(ctx, pod) })
	}
	if err != nil {
		m.cfg.Logger.Error("a pod has not ended in its time", "pod", pod.Namespace+"/"+pod.Name, "uid", pod.UID, "grace", grace, "err", err)
	}
	m.cfg.Hooks.Killed(KilledInfo{Pod: pod, GracePeriodSeconds: grace, Took: time.Since(begun), Err: err})
	return err
}

// flush waits until the last statuses are recorded, or until the machine has waited
// long enough: nobody could say them later (sh-12, F-64).
func (m *Manager) flush(ctx context.Context, times *schedule) error {
	if m.cfg.Flush == nil {
		return nil
	}
	err := times.try(ctx, byLast, func(ctx context.Context, _ time.Time) error { return m.cfg.Flush(ctx) })
	if err != nil {
		m.cfg.Logger.Error("the machine stops, and last statuses are not recorded", "err", err)
	}
	return err
}
