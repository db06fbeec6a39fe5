package cri

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/restart"
	"github.com/kubeparts/kubeparts/runtime"
)

// noteOver writes down which regular containers of a pod have exited for good, as
// status shows them, and returns the record. Without that an operator who removes
// what is left of such a container would have it run a second time, which nobody
// could be told (st-50). It costs one write for each such container.
func (r *Runtime) checkpointTerminated(pod *v1.Pod, status *runtime.PodStatus) *podCheckpoint {
	rec := r.checkpoints.get(pod.UID)
	if restart.MayRestartAll(pod) || runtime.IsStatic(pod) {
		// Any container may come back; or the next agent would not know what was
		// said of it: static pods are not read back.
		return rec
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		newest := status.Container(c.Name)
		if newest == nil || newest.State != runtime.ContainerExited || restart.After(pod, c, newest.ExitCode) != restart.Final {
			continue
		}
		if code, ok := rec.Terminated[c.Name]; ok && code == newest.ExitCode {
			continue
		}
		r.checkpoints.update(pod, func(rec *podCheckpoint) { rec.Terminated[c.Name] = newest.ExitCode })
		rec = r.checkpoints.get(pod.UID)
	}
	return rec
}
