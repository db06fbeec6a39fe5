package pipeline

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// ProbeChanged reports the status of a pod again because a result of its probes has changed,
// if a call of the runtime is in progress for the pod: SyncPod takes as long as an image pull
// or the grace period of a container that it restarts, KillPod as long as the grace period of
// the pod, and clients of the pod depend on its readiness meanwhile. Otherwise it has no
// effect; [podworker.Table.PodChanged] has the pod synced. It does not block.
func (p *Pipeline) ProbeChanged(uid types.UID) {
	p.reportDuringCall(uid, func(*call) bool { return true })
}

// Observed reports the status of a pod with what the runtime reported during SyncPod, in two cases:
//   - SyncPod has created the sandbox and continues, usually with an image pull: the pod is then ready to
//     start containers and has its IP addresses (rule sl-64). Containers remain as they were reported.
//   - SyncPod has replaced a running container and runs a postStart hook, of that or of another container,
//     which may take any time: clients of the pod must not take the old instance for running. The kubelet
//     reports it after the hook.
//
// In all other cases Observed has no effect. observed must not be changed any more. It does not block.
func (p *Pipeline) Observed(uid types.UID, observed *runtime.PodStatus) {
	p.reportDuringCall(uid, func(c *call) bool {
		switch {
		case hasReplacementDuringHook(c.Status, observed):
			c.Status = observed
		case hasNewSandbox(c.Status, observed):
			status := *observed
			if status.Containers = nil; c.Status != nil {
				status.Containers = c.Status.Containers
			}
			c.Status = &status
		default:
			return false
		}
		return true
	})
}

// reportDuringCall reports the status of a pod for which SyncPod or KillPod is in progress, if due
// returns true.
func (p *Pipeline) reportDuringCall(uid types.UID, due func(*call) bool) {
	p.mu.Lock()
	c := p.active[uid]
	p.mu.Unlock()
	if c == nil {
		return
	}
	p.callLock <- struct{}{}
	defer func() { <-p.callLock }()
	if c.inRuntime && due(c) {
		p.report(c.Pod, c.Status, c.Termination)
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

// hasReplacementDuringHook reports whether a postStart hook is pending and a container that ran before has
// been replaced.
func hasReplacementDuringHook(before, now *runtime.PodStatus) bool {
	if before == nil || now == nil || !isStarting(now) {
		return false
	}
	return slices.ContainsFunc(now.Containers, func(c runtime.ContainerStatus) bool {
		return c.State == runtime.ContainerRunning && slices.ContainsFunc(before.Containers, func(b runtime.ContainerStatus) bool {
			return b.Name == c.Name && b.ID != c.ID && b.State == runtime.ContainerRunning
		})
	})
}

// setInRuntime sets whether SyncPod or KillPod is in progress, during which ProbeChanged and Observed
// report the status of the pod. No report is in progress when it returns.
func (p *Pipeline) setInRuntime(c *call, in bool) {
	p.callLock <- struct{}{}
	c.inRuntime = in
	<-p.callLock
}
