package prober

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// Results returns the results of the liveness and startup probes of the pod, by container ID,
// for runtime.SyncRequest.Probes. It is not nil and owned by the caller.
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
		case !w.state.hasResult:
		case w.kind == Liveness:
			setResult(&results.Liveness, w)
		case w.kind == Startup:
			setResult(&results.Startup, w)
		}
	}
	return results
}

func setResult(results *map[string]runtime.ProbeResult, w *worker) {
	if *results == nil {
		*results = make(map[string]runtime.ProbeResult)
	}
	(*results)[w.state.id] = w.state.result
}

// Containers returns the results of the readiness and startup probes of the pod, by container
// name, for its status. If the current instance of a container has not been probed, the result
// is that from before a restart of the agent, or unknown, whatever the result of an earlier
// instance was. The map is not nil and owned by the caller.
func (m *Manager) Containers(uid types.UID) map[string]runtime.ProbeStatus {
	m.mu.Lock()
	p := m.pods[uid]
	m.mu.Unlock()
	if p == nil {
		return m.restoredResults(uid)
	}
	observed := m.observe(p)
	m.mu.Lock()
	defer m.mu.Unlock()
	v, outdated := view{pod: p.pod, observed: observed}, false
	containers := make(map[string]runtime.ProbeStatus)
	for _, w := range p.workers {
		c := containers[w.container.Name]
		result := runtime.ProbeUnknown
		if id := v.facts(w.container).id; id != w.state.id {
			outdated, result = true, m.before(w, id)
		} else if w.state.hasResult {
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
	if outdated { // a new instance that the loop has not inspected
		m.inspectLocked(p)
	}
	return containers
}
