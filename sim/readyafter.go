package sim

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// addProbeResults replaces the prober: the probes of a container succeed ReadyAfter its
// start. The pod is synced then.
func (n *Node) addProbeResults(f *status.Facts) { f.Probes = n.probeResults(f.Pod.UID) }

func (n *Node) probeResults(uid types.UID) map[string]runtime.ProbeStatus {
	out := map[string]runtime.ProbeStatus{}
	observed, err := n.agent.PLEG().Get(uid)
	if err != nil {
		return out
	}
	for i := range observed.Containers {
		c := &observed.Containers[i]
		if _, ok := out[c.Name]; ok || c.State != runtime.ContainerRunning {
			continue
		}
		delay := n.cfg.ReadyAfter(*c) - time.Since(c.StartedAt)
		result := runtime.ProbeSuccess
		if delay > 0 {
			result = runtime.ProbeFailure
			n.syncAfter(uid, c.ID, delay)
		}
		out[c.Name] = runtime.ProbeStatus{Startup: result, Readiness: result}
	}
	return out
}

// syncAfter syncs the pod after a delay, once per instance of a container.
func (n *Node) syncAfter(uid types.UID, id string, delay time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.readyTimers == nil || n.readyTimers[id] != nil {
		return
	}
	n.readyTimers[id] = time.AfterFunc(delay, func() {
		n.mu.Lock()
		running := n.readyTimers != nil
		if running {
			delete(n.readyTimers, id)
		}
		n.mu.Unlock()
		if running {
			n.agent.Table().PodChanged(uid)
		}
	})
}

func (n *Node) stopTimers() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range n.readyTimers {
		t.Stop()
	}
	n.readyTimers = nil
}
