package prober

import (
	"context"
	"reflect"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// Add sets the probes of a pod to those of its spec: new ones start, removed ones end, and others
// continue with their counters. Add is idempotent and must be called at each sync. It also
// inspects the pod, as Inspect does.
//
// The caller must not modify the pod afterwards.
func (m *Manager) Add(pod *v1.Pod) {
	m.mu.Lock()
	defer m.unlock()
	p := m.pods[pod.UID]
	if p == nil {
		p = &probedPod{uid: pod.UID}
	}
	if p.pod == pod {
		m.inspectLocked(p)
		return
	}
	m.setPodLocked(p, pod)
}

// setPodLocked sets the probes of p to those of pod.
func (m *Manager) setPodLocked(p *probedPod, pod *v1.Pod) {
	was := p.workers
	p.pod, p.workers = pod, nil
	for _, c := range probedContainers(pod) {
		var startup *worker
		for _, k := range kinds {
			probe := k.Probe(c)
			if probe == nil || p.terminating && k != Readiness {
				continue
			}
			w := findWorker(was, c.Name, k)
			if w == nil {
				w = &worker{pod: p, kind: k, index: -1}
			}
			m.setLocked(w, c, probe)
			if k == Startup {
				startup = w
			}
			w.started = nil
			if k != Startup {
				w.started = startup
			}
			p.workers = append(p.workers, w)
		}
	}
	for _, w := range was {
		if !slices.Contains(p.workers, w) {
			m.stopLocked(w)
		}
	}
	if len(p.workers) == 0 && !p.terminating {
		p.removed = true
		delete(m.pods, p.uid)
		return
	}
	m.pods[p.uid] = p
	m.inspectLocked(p)
}

// probedContainers returns the containers of pod that may have probes, in order. Of the init
// containers only sidecars may.
func probedContainers(pod *v1.Pod) []*v1.Container {
	var list []*v1.Container
	for i := range pod.Spec.Containers {
		list = append(list, &pod.Spec.Containers[i])
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; podspec.IsSidecar(c) {
			list = append(list, c)
		}
	}
	return list
}

func findWorker(workers []*worker, container string, k Kind) *worker {
	for _, w := range workers {
		if w.container.Name == container && w.kind == k {
			return w
		}
	}
	return nil
}

// setLocked sets the probe of w. The counters are kept. An attempt that is due later than the new
// period permits is moved forward.
func (m *Manager) setLocked(w *worker, c *v1.Container, probe *v1.Probe) {
	same := w.probe != nil && (w.probe == probe || reflect.DeepEqual(w.probe, probe))
	w.container = c
	if same && m.cfg.Schedule.Timing == nil {
		w.probe = probe
		return
	}
	t := timingOf(probe)
	if m.cfg.Schedule.Timing != nil {
		t = m.cfg.Schedule.Timing(w.pod.pod, c.Name, w.kind, t).defaults()
	}
	existed := w.probe != nil
	w.probe = probe
	if same && t == w.timing {
		return
	}
	w.timing = t
	if existed && w.index >= 0 && w.state.phase == probing {
		if soon := time.Now().Add(t.Period); soon.Before(w.wake) {
			w.slot, w.wake = soon, soon
			m.timers.set(w)
			wake(m.wake)
		}
	}
}

// stopLocked ends a worker.
func (m *Manager) stopLocked(w *worker) {
	w.removed = true
	w.cancelAttempt()
	m.timers.drop(w)
	if w.state.phase != ended {
		m.removeLocked(w)
	}
	m.store.dirty = true
}

// Inspect reads the status of the pod again, because its containers may have changed, as a pleg
// event reports. A new instance is then probed without delay. Without it the change is detected
// within ten seconds.
func (m *Manager) Inspect(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.pods[uid]; p != nil {
		m.inspectLocked(p)
	}
}

// Trigger runs the readiness probes of the pod immediately; the next attempts follow a full period
// later. Probes that wait for the container to start, or for its initial delay, are not
// affected.
func (m *Manager) Trigger(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pods[uid]
	if p == nil {
		return
	}
	for _, w := range p.workers {
		switch {
		case w.kind != Readiness || w.state.phase != probing:
		case w.turn != resting:
			w.again = true
		case !w.fresh && w.ran:
			now := time.Now()
			w.slot, w.wake, w.spread = now, now, false
			m.timers.set(w)
			wake(m.wake)
		}
	}
}

// StopLiveness ends the liveness and startup probes of a terminating pod; readiness is still
// probed. A later Add does not start them again.
func (m *Manager) StopLiveness(pod *v1.Pod) {
	m.mu.Lock()
	defer m.unlock()
	if p := m.pods[pod.UID]; p != nil {
		p.terminating = true
		m.setPodLocked(p, pod)
	}
}

// Remove ends all probes of the pod.
func (m *Manager) Remove(uid types.UID) {
	m.mu.Lock()
	defer m.unlock()
	m.dropLocked(uid)
}

// Retain ends the probes of every pod that keep rejects. keep must not call the Manager. It
// implements podworker.Retainer and returns nil.
func (m *Manager) Retain(_ context.Context, keep func(uid types.UID) bool) error {
	m.mu.Lock()
	defer m.unlock()
	for uid := range m.pods {
		if !keep(uid) {
			m.dropLocked(uid)
		}
	}
	return nil
}

func (m *Manager) dropLocked(uid types.UID) {
	p := m.pods[uid]
	if p == nil {
		return
	}
	delete(m.pods, uid)
	p.removed = true
	for _, w := range p.workers {
		m.stopLocked(w)
	}
}
