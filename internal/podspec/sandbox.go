package podspec

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// A SandboxProblem is why no container of a pod can be started in its newest sandbox. The zero
// value means that the sandbox is usable.
type SandboxProblem int

// The problems of a sandbox (rule rt-25).
const (
	NoSandbox           SandboxProblem = iota + 1 // there is none
	SeveralSandboxes                              // more than one is ready
	SandboxNotReady                               // the newest is not ready
	SandboxStateUnknown                           // the runtime has lost the state of the newest
	SandboxNetworkMode                            // it has the host's network and the pod has not, or the reverse
	SandboxWithoutIP                              // its network has no address
)

// SandboxProblemOf returns the problem of the newest sandbox of pod. Plans and conditions use
// it, so that they agree.
func SandboxProblemOf(pod *v1.Pod, status *runtime.PodStatus) SandboxProblem {
	if len(status.Sandboxes) == 0 {
		return NoSandbox
	}
	ready := 0
	for i := range status.Sandboxes {
		if status.Sandboxes[i].State == runtime.SandboxReady {
			ready++
		}
	}
	switch newest := &status.Sandboxes[0]; {
	case ready > 1:
		return SeveralSandboxes
	case newest.State == runtime.SandboxNotReady:
		return SandboxNotReady
	case newest.State != runtime.SandboxReady:
		return SandboxStateUnknown
	case newest.HostNetwork != pod.Spec.HostNetwork:
		return SandboxNetworkMode
	case !pod.Spec.HostNetwork && newest.NetworkReported && (len(newest.IPs) == 0 || newest.IPs[0] == ""):
		return SandboxWithoutIP
	default:
		return 0
	}
}
