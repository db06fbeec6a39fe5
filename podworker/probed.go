package podworker

import "k8s.io/apimachinery/pkg/types"

// Probed says that the probes of a pod have come to something else. While the
// pod is being stopped, which may take as long as its grace period, its status
// is computed anew: readiness is probed to the end, and those who send requests
// to the pod want to know it (prober-18, prober-65). A pod that isn't is synced
// for it instead: [Inbox.PodChanged]. Probed doesn't block.
func (p *Pipeline) Probed(uid types.UID) {
	p.stopping.Lock()
	defer p.stopping.Unlock()
	if w, ok := p.stops[uid]; ok {
		p.report(w.Pod, w.Status, w.Ending)
	}
}

// whileStopping lets Probed report w's status until the func that it returns is
// called; then no such report is under way.
func (p *Pipeline) whileStopping(w Work) (stopped func()) {
	p.stopping.Lock()
	defer p.stopping.Unlock()
	p.stops[w.UID] = w
	return func() {
		p.stopping.Lock()
		defer p.stopping.Unlock()
		delete(p.stops, w.UID)
	}
}
