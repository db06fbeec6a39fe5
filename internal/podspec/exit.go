package podspec

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// Killed is the assumed exit code of an instance whose exit code is unknown: 128+9, as after
// SIGKILL.
const Killed = 137

// reasonOOMKilled is the reason of an instance that the kernel killed for lack of memory.
const reasonOOMKilled = "OOMKilled"

// An Exit is the part of the end of an instance of a container on which it depends whether the
// container has succeeded and whether it restarts.
type Exit struct {
	Code   int32
	Reason string // as in the container's status

	// Replaced: the node stopped the instance in order to start another one. The container
	// restarts whatever the code is; the code of an instance that was stopped is its choice.
	Replaced bool
}

// ExitOf returns the exit of an instance. One that has not exited, but whose sandbox does not
// exist any more, counts as killed.
func ExitOf(inst *runtime.ContainerStatus) Exit {
	if inst.State != runtime.ContainerExited {
		return Exit{Code: Killed}
	}
	return Exit{Code: inst.ExitCode, Reason: inst.Reason, Replaced: inst.Replaced}
}

// TerminatedExit returns the exit in a container status, which does not contain Replaced.
func TerminatedExit(t *v1.ContainerStateTerminated) Exit {
	return Exit{Code: t.ExitCode, Reason: t.Reason}
}

// Succeeded reports whether container c of pod has succeeded. An init container that is not a
// sidecar has failed if it was killed for lack of memory, regardless of its exit code (rule
// rt-64): the process that was killed may not have been the one that exits. Plans, phases,
// conditions and the check of transitions use this function, so that they agree.
func Succeeded(pod *v1.Pod, c *v1.Container, e Exit) bool {
	return e.Code == 0 && !e.Replaced && (e.Reason != reasonOOMKilled || !RunsToCompletion(pod, c.Name))
}
