package pipeline

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// ProbeChanged reports the status of a pod again because a result of its probes has changed,
// if a call of the runtime is in progress for the pod: SyncPod takes as long as an image pull
// or the grace period of a container that it restarts, KillPod as long as the grace period of
// the pod, and clients of the pod depend on its readiness meanwhile. Otherwise it has no
// effect; [podworker.Table.PodChanged] has the pod synced. It does not block.
func (p *Pipeline) ProbeChanged(uid types.UID) {
	p.callLock <- struct{}{}
	defer func() { <-p.callLock }()
	if req, ok := p.calls[uid]; ok {
		p.report(req.Pod, req.Status, req.Termination)
	}
}

// Observed reports the status of a pod with what the runtime reported during SyncPod, if SyncPod
// has created its sandbox and continues, usually with an image pull: the pod is then ready to
// start containers and has its IP addresses (rule sl-64). In all other cases it has no effect.
// observed must not be changed any more. It does not block.
func (p *Pipeline) Observed(uid types.UID, observed *runtime.PodStatus) {
	p.callLock <- struct{}{}
	defer func() { <-p.callLock }()
	req, ok := p.calls[uid]
	if ok && hasNewSandbox(req.Status, observed) {
		req.Status = observed
		p.calls[uid] = req
		p.report(req.Pod, req.Status, req.Termination)
	}
}

// hasNewSandbox reports whether the newest sandbox of a pod is ready now, and was not before or is
// another one.
func hasNewSandbox(before, now *runtime.PodStatus) bool {
	if now == nil || len(now.Sandboxes) == 0 || now.Sandboxes[0].State != runtime.SandboxReady {
		return false
	}
	return before == nil || len(before.Sandboxes) == 0 ||
		before.Sandboxes[0].ID != now.Sandboxes[0].ID || before.Sandboxes[0].State != runtime.SandboxReady
}

// beginCall lets ProbeChanged and Observed report the status for req until the returned function is
// called, which returns the newest status. After that no such report is in progress.
func (p *Pipeline) beginCall(req podworker.SyncRequest) (returned func() *runtime.PodStatus) {
	p.callLock <- struct{}{}
	defer func() { <-p.callLock }()
	p.calls[req.UID] = req
	return func() *runtime.PodStatus {
		p.callLock <- struct{}{}
		defer func() { <-p.callLock }()
		newest := p.calls[req.UID].Status
		delete(p.calls, req.UID)
		return newest
	}
}
