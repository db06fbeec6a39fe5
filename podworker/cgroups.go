package podworker

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// Cgroups make the cgroup that holds a pod.
type Cgroups interface {
	// Ensure makes the pod's cgroup what its spec says.
	Ensure(ctx context.Context, pod *v1.Pod) error

	// Remove ends what is left in the pod's cgroup, and removes it.
	Remove(ctx context.Context, uid types.UID) error
}

// A CgroupFinder is Cgroups that can tell whether a pod has its cgroup. Without it
// containers that run outside of it, because an agent of another configuration
// started them, run on without its limits.
type CgroupFinder interface {
	// Has reports whether the pod's cgroup is there. It doesn't block.
	Has(pod *v1.Pod) bool
}

// outside reports whether containers of the pod run, but not in its cgroup, which is
// not there (cm-20).
func (p *Pipeline) outside(w SyncRequest) bool {
	finder, ok := p.cfg.Cgroups.(CgroupFinder)
	if !ok || w.Status == nil {
		return false
	}
	for i := range w.Status.Containers {
		if w.Status.Containers[i].State == runtime.ContainerRunning {
			return !finder.Has(w.Pod)
		}
	}
	return false
}

// bringIn stops the containers that run outside of the pod's cgroup. What starts
// again does so inside, at the sync that the look at the stopped pod brings.
func (p *Pipeline) bringIn(ctx context.Context, w SyncRequest) error {
	p.at(w.UID, "stop")
	p.cfg.Logger.Info("containers run outside of the pod's cgroup, and are stopped", "pod", w.Pod.Name, "uid", w.UID)
	if err := p.cfg.Runtime.KillPod(ctx, runtime.KillRequest{UID: w.UID, Pod: w.Pod, Status: w.Status}); err != nil {
		p.failed(ctx, w.Pod, "FailedKillPod", "error killing pod: %v", err)
		return fmt.Errorf("podworker: stop what runs outside of its cgroup: %w", err)
	}
	p.cfg.Relist(w.UID)
	return nil
}
