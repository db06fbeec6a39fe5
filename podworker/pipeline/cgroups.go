package pipeline

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// Cgroups manages the cgroups of pods. If it has the method
//
//	Has(pod *v1.Pod) bool // reports whether the pod's cgroup exists; must not block
//
// then running containers of a pod whose cgroup does not exist, because an agent with another
// configuration started them, are stopped and started in the cgroup.
type Cgroups interface {
	// Ensure creates or updates the cgroup of the pod according to its spec.
	Ensure(ctx context.Context, pod *v1.Pod) error

	// Remove kills the remaining processes in the pod's cgroup and removes it.
	Remove(ctx context.Context, uid types.UID) error
}

// cgroupFinder is the optional interface of Cgroups.
type cgroupFinder interface {
	Has(pod *v1.Pod) bool
}

// outsideCgroup reports whether containers of the pod run and its cgroup does not exist.
func (p *Pipeline) outsideCgroup(req podworker.SyncRequest) bool {
	finder, ok := p.cfg.Resources.Cgroups.(cgroupFinder)
	if !ok || req.Status == nil {
		return false
	}
	for i := range req.Status.Containers {
		if req.Status.Containers[i].State == runtime.ContainerRunning {
			return !finder.Has(req.Pod)
		}
	}
	return false
}

// killOutsideCgroup stops the containers that run outside of the pod's cgroup. The sync that
// follows the relist starts them again in the cgroup.
func (p *Pipeline) killOutsideCgroup(ctx context.Context, req podworker.SyncRequest) error {
	p.beginStep(req.UID, stepStop)
	p.cfg.Logger.Info("Restarting containers that run outside of the pod's cgroup", "pod", req.Pod.Namespace+"/"+req.Pod.Name, "podUID", req.UID)
	if err := p.cfg.Runtime.KillPod(ctx, runtime.KillRequest{UID: req.UID, Pod: req.Pod, Status: req.Status}); err != nil {
		p.failed(ctx, req.Pod, "FailedKillPod", "error killing pod: %v", err)
		return fmt.Errorf("pipeline: stop containers outside of the pod's cgroup: %w", err)
	}
	p.cfg.Relister.RequestRelist(req.UID)
	return nil
}
