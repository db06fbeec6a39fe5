package podworker

import "k8s.io/apimachinery/pkg/types"

// ProbeChanged reports the status of a pod again because a result of its probes has changed,
// if a call of the runtime is in progress for the pod: SyncPod takes as long as an image pull
// or the grace period of a container that it restarts, KillPod as long as the grace period of
// the pod, and clients of the pod depend on its readiness meanwhile. Otherwise it has no
// effect; [Inbox.PodChanged] has the pod synced. It does not block.
func (p *Pipeline) ProbeChanged(uid types.UID) {
	p.callLock <- struct{}{}
	defer func() { <-p.callLock }()
	if req, ok := p.calls[uid]; ok {
		p.report(req.Pod, req.Status, req.Termination)
	}
}

// beginCall lets ProbeChanged report the status for req until the returned function is
// called. After that no such report is in progress.
func (p *Pipeline) beginCall(req SyncRequest) (returned func()) {
	p.callLock <- struct{}{}
	defer func() { <-p.callLock }()
	p.calls[req.UID] = req
	return func() {
		p.callLock <- struct{}{}
		defer func() { <-p.callLock }()
		delete(p.calls, req.UID)
	}
}
