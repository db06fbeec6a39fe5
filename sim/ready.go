package sim

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// probed plays the prober, which there is not yet: the probes of a container
// pass ReadyAfter its start. The pod is looked at again then.
func (n *Node) probed(uid types.UID) map[string]runtime.ProbeStatus {
	out := map[string]runtime.ProbeStatus{}
	seen, err := n.agent.PLEG().Get(uid)
	if err != nil {
		return out
	}
	for i := range seen.Containers {
		c := &seen.Containers[i]
		if _, ok := out[c.Name]; ok || c.State != runtime.ContainerRunning {
			continue
		}
		in := n.cfg.ReadyAfter(*c) - time.Since(c.StartedAt)
		result := runtime.ProbeSuccess
		if in > 0 {
			result = runtime.ProbeFailure
			n.lookAgain(uid, c.ID, in)
		}
		out[c.Name] = runtime.ProbeStatus{Startup: result, Readiness: result}
	}
	return out
}

// lookAgain has the pod synced in that time, once for an instance.
func (n *Node) lookAgain(uid types.UID, id string, in time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ready == nil || n.ready[id] != nil {
		return
	}
	n.ready[id] = time.AfterFunc(in, func() {
		n.mu.Lock()
		running := n.ready != nil
		if running {
			delete(n.ready, id)
		}
		n.mu.Unlock()
		if running {
			n.agent.Loop().PodChanged(uid)
		}
	})
}

func (n *Node) stopTimers() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range n.ready {
		t.Stop()
	}
	n.ready = nil
}
