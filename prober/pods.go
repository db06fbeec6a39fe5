package prober

import (
	"reflect"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/restart"
)

// Add makes the probes of a pod those of its spec: new ones begin, those that
// are gone end, and others go on with what they have found out (F-09). A pod
// that is probed already is nothing special, so it is called at each sync. It
// also has the Manager look at the pod, as Look does.
//
// The pod may not be changed afterwards.
func (m *Manager) Add(pod *v1.Pod) {
	m.mu.Lock()
	defer m.unlock()
	p := m.pods[pod.UID]
	if p == nil {
		p = &watched{uid: pod.UID}
	}
	if p.pod == pod {
		m.lookLocked(p)
		return
	}
	m.putLocked(p, pod)
}

// putLocked makes the probes of p those of pod.
func (m *Manager) putLocked(p *watched, pod *v1.Pod) {
	was := p.workers
	p.pod, p.workers = pod, nil
	for _, c := range probed(pod) {
		var startup *worker
		for _, k := range kinds { // prober-3
			probe := k.Of(c)
			if probe == nil || p.ending && k != Readiness {
				continue
			}
			w := worked(was, c.Name, k)
			if w == nil {
				w = &worker{of: p, kind: k, place: -1}
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
	if len(p.workers) == 0 && !p.ending {
		p.gone = true
		delete(m.pods, p.uid)
		return
	}
	m.pods[p.uid] = p
	m.lookLocked(p)
}

// probed returns the containers of pod that are probed, in order: init
// containers are, if they keep running (prober-2, prober-3).
func probed(pod *v1.Pod) []*v1.Container {
	var list []*v1.Container
	for i := range pod.Spec.Containers {
		list = append(list, &pod.Spec.Containers[i])
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; restart.Sidecar(c) {
			list = append(list, c)
		}
	}
	return list
}

func worked(workers []*worker, container string, k Kind) *worker {
	for _, w := range workers {
		if w.container.Name == container && w.kind == k {
			return w
		}
	}
	return nil
}

// setLocked makes w the worker for that probe of c. What it is about stays what
// it was, so its counters stay, too; a run that is due later than a new period
// says is due then.
func (m *Manager) setLocked(w *worker, c *v1.Container, probe *v1.Probe) {
	same := w.probe != nil && (w.probe == probe || reflect.DeepEqual(w.probe, probe))
	w.container = c
	if same && m.cfg.Timing == nil {
		w.probe = probe
		return
	}
	t := TimingOf(probe)
	if m.cfg.Timing != nil {
		t = m.cfg.Timing(w.of.pod, c.Name, w.kind, t).defaults()
	}
	known := w.probe != nil
	w.probe = probe
	if same && t == w.timing {
		return
	}
	w.timing = t
	if known && w.place >= 0 && w.state.phase == probing {
		if soon := time.Now().Add(t.Period); soon.Before(w.wake) {
			w.slot, w.wake = soon, soon
			m.timers.set(w)
			edge(m.wake)
		}
	}
}

// stopLocked ends w.
func (m *Manager) stopLocked(w *worker) {
	w.gone = true
	w.callOff()
	m.timers.drop(w)
	if w.state.phase != ended {
		m.removeLocked(w)
	}
	m.store.dirty = true
}

// Look says that containers of the pod may have changed, as pleg's events tell:
// a new instance is probed at once, and not when its predecessor would have
// been. Without it that is noticed within ten seconds.
func (m *Manager) Look(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.pods[uid]; p != nil {
		m.lookLocked(p)
	}
}

// Trigger runs the readiness probes of the pod at once; the next runs follow
// a full period later (prober-8). Probes that wait for the container to start,
// or for its initial delay, go on waiting.
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
			edge(m.wake)
		}
	}
}

// StopLiveness ends the liveness and startup probes of the pod, which is to
// terminate; readiness is still probed (prober-74). What it was told of stays so
// if Add is called again.
func (m *Manager) StopLiveness(pod *v1.Pod) {
	m.mu.Lock()
	defer m.unlock()
	if p := m.pods[pod.UID]; p != nil {
		p.ending = true
		m.putLocked(p, pod)
	}
}

// Remove ends all probes of the pod (prober-75).
func (m *Manager) Remove(uid types.UID) {
	m.mu.Lock()
	defer m.unlock()
	m.dropLocked(uid)
}

// Retain ends the probes of all pods but those that keep says yes to, which
// must not call the Manager: for who cleans up now and then (prober-76).
func (m *Manager) Retain(keep func(uid types.UID) bool) {
	m.mu.Lock()
	defer m.unlock()
	for uid := range m.pods {
		if !keep(uid) {
			m.dropLocked(uid)
		}
	}
}

func (m *Manager) dropLocked(uid types.UID) {
	p := m.pods[uid]
	if p == nil {
		return
	}
	delete(m.pods, uid)
	p.gone = true
	for _, w := range p.workers {
		m.stopLocked(w)
	}
}
