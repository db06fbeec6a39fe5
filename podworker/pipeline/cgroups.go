package pipeline

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// Cgroups manages the cgroups of pods. cm.Manager implements it.
type Cgroups interface {
	// Ensure creates or updates the cgroup of the pod according to its spec.
	Ensure(ctx context.Context, pod *v1.Pod) error

	// Has reports whether the pod's cgroup exists. If it does not, running containers of the pod,
	// which an agent with another configuration started, are stopped and started in the cgroup.
	// It must not block.
	Has(pod *v1.Pod) bool

	// Remove kills the remaining processes in the pod's cgroup and removes it.
	Remove(ctx context.Context, uid types.UID) error
}

// createCgroup creates or updates the pod's cgroup.
func (p *Pipeline) createCgroup(ctx context.Context, c *call) error {
	if err := p.cfg.Resources.Cgroups.Ensure(ctx, c.Pod); err != nil {
		p.failed(ctx, c.Pod, "FailedCreatePodContainer", "unable to ensure pod container exists: %v", err)
		return fmt.Errorf("pipeline: ensure cgroup: %w", err)
	}
	return nil
}

// stopOutsideCgroup stops the containers of a pod whose cgroup does not exist, and ends the call. The
// sync that follows the relist starts them again in the cgroup.
func (p *Pipeline) stopOutsideCgroup(ctx context.Context, c *call) error {
	running := func(s runtime.ContainerStatus) bool { return s.State == runtime.ContainerRunning }
	if c.Status == nil || !slices.ContainsFunc(c.Status.Containers, running) || p.cfg.Resources.Cgroups.Has(c.Pod) {
		return nil
	}
	p.cfg.Logger.Info("Restarting containers that run outside of the pod's cgroup", "pod", c.Pod.Namespace+"/"+c.Pod.Name, "podUID", c.UID)
	if err := p.cfg.Runtime.KillPod(ctx, runtime.KillRequest{UID: c.UID, Pod: c.Pod, Status: c.Status}); err != nil {
		p.failed(ctx, c.Pod, "FailedKillPod", "error killing pod: %v", err)
		return fmt.Errorf("pipeline: stop containers outside of the pod's cgroup: %w", err)
	}
	p.cfg.Relister.RequestRelist(c.UID)
	c.end(c.result)
	return nil
}
