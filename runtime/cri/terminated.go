package cri

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// checkpointTerminated stores which regular containers of a pod have terminated and will
// not restart, and returns the checkpoint. Without it, removing such a container from the
// runtime would run it a second time. It writes once per container.
func (r *Runtime) checkpointTerminated(pod *v1.Pod, status *runtime.PodStatus) *podCheckpoint {
	rec := r.checkpoints.get(pod.UID)
	if podspec.MayRestartAll(pod) || runtime.IsStatic(pod) {
		// Any container may restart; and the status of static pods is not read back from
		// the API server.
		return rec
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		newest := status.Container(c.Name)
		if newest == nil || newest.State != runtime.ContainerExited || podspec.ActionAfterExit(pod, c, podspec.ExitOf(newest)) != podspec.NoRestart {
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

// checkpointReplaced stores which instances a plan stops to start their containers again.
// Without it, one that exits with 0 when it is stopped would count as completed if its
// container cannot be started at once.
func (s *podSync) checkpointReplaced(list []plan.Replaced) {
	if len(list) == 0 {
		return
	}
	s.r.checkpoints.update(s.pod, func(rec *podCheckpoint) {
		for _, c := range list {
			rec.Replaced[c.Name] = runtimeID(c.ID)
		}
	})
}
