package podworker

import "k8s.io/apimachinery/pkg/types"

// Probed reports the status of a pod again because a result of its probes has
// changed, if a call of the runtime is in progress for the pod: SyncPod takes as long
// as an image pull or the grace period of a container that it restarts, KillPod as
// long as that of the pod, and clients of the pod depend on its readiness meanwhile
// (prober-18, prober-65). Otherwise it does nothing; [Inbox.PodChanged] has the pod
// synced. It does not block.
func (p *Pipeline) Probed(uid types.UID) {
	p.calling <- struct{}{}
	defer func() { <-p.calling }()
	if w, ok := p.calls[uid]; ok {
		p.report(w.Pod, w.Status, w.Ending)
	}
}

// whileCalling lets Probed report w's status until the func that it returns is
// called; then no such report is in progress.
func (p *Pipeline) whileCalling(w SyncRequest) (returned func()) {
	p.calling <- struct{}{}
	defer func() { <-p.calling }()
	p.calls[w.UID] = w
	return func() {
		p.calling <- struct{}{}
		defer func() { <-p.calling }()
		delete(p.calls, w.UID)
	}
}
