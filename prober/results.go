package prober

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// Results returns what liveness and startup probes of the pod have come to, by
// container ID, for the runtime to act on (prober-66). It is never nil. The
// caller may keep it and change it.
func (m *Manager) Results(pod *v1.Pod) *runtime.ProbeResults {
	m.mu.Lock()
	defer m.mu.Unlock()
	results := &runtime.ProbeResults{}
	p := m.pods[pod.UID]
	if p == nil {
		return results
	}
	for _, w := range p.workers {
		switch {
		case !w.state.known:
		case w.kind == Liveness:
			put(&results.Liveness, w)
		case w.kind == Startup:
			put(&results.Startup, w)
		}
	}
	return results
}

func put(results *map[string]runtime.ProbeResult, w *worker) {
	if *results == nil {
		*results = make(map[string]runtime.ProbeResult)
	}
	(*results)[w.state.id] = w.state.result
}

// Containers returns what the probes say of the pod's containers, by name, for
// its status (prober-67, prober-68). Of a container whose present instance has
// not been probed they say what an earlier life of the agent had found out, or
// nothing, whatever came of the one before. It is never nil, and the caller's.
func (m *Manager) Containers(uid types.UID) map[string]runtime.ProbeStatus {
	m.mu.Lock()
	p := m.pods[uid]
	m.mu.Unlock()
	if p == nil {
		return m.earlier(uid)
	}
	observed := m.observe(p)
	m.mu.Lock()
	defer m.mu.Unlock()
	v, old := view{pod: p.pod, observed: observed}, false
	containers := make(map[string]runtime.ProbeStatus)
	for _, w := range p.workers {
		c := containers[w.container.Name]
		result := runtime.ProbeUnknown
		if id := v.facts(w.container).id; id != w.state.id {
			old, result = true, m.before(w, id)
		} else if w.state.known {
			result = w.state.result
		}
		switch w.kind {
		case Startup:
			c.Startup = result
		case Readiness:
			c.Readiness = result
		}
		containers[w.container.Name] = c
	}
	if old { // there is something to see that nobody has said
		m.lookLocked(p)
	}
	return containers
}
