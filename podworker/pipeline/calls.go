package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

func (p *Pipeline) syncSteps() []step {
	r := p.cfg.Resources
	return []step{
		{AdmitPod, p.admit},
		{ReportStatus, p.reportStatus},
		{CheckNetwork, when(p.cfg.Network != nil, p.checkNetwork)},
		{RegisterObjects, when(r.Objects != nil, p.registerObjects)},
		{StopOutsideCgroup, when(r.Cgroups != nil, p.stopOutsideCgroup)},
		{CreateCgroup, when(r.Cgroups != nil, p.createCgroup)},
		{CreateMirror, when(p.cfg.Mirrors != nil, p.createMirror)},
		{MountVolumes, when(r.Volumes != nil, p.mountVolumes)},
		{StartProbes, when(p.cfg.Probes != nil, p.startProbes)}, // after the volumes are mounted (rule sl-36)
		{SyncContainers, p.syncContainers},
	}
}

// Sync implements [podworker.Handler]. If the error of a step wraps a *runtime.Rejection, then the pod
// fails, or stays Pending if it is deferred. At the deadline of the pod Sync is canceled in any step,
// and the pod fails.
func (p *Pipeline) Sync(ctx context.Context, req podworker.SyncRequest) (podworker.SyncResult, error) {
	c := p.newCall(req)
	limited, end := p.beginDeadline(ctx, c)
	defer end()
	err := p.run(limited, p.sync, c)
	if rejection, ok := errors.AsType[*runtime.Rejection](err); ok {
		err = p.reject(c, rejection)
	}
	if !c.result.Terminal && ctx.Err() == nil && errors.Is(context.Cause(limited), errDeadline) {
		p.exceed(c)
		err = nil
	}
	return c.result, err
}

func (p *Pipeline) reportStatus(ctx context.Context, c *call) error {
	if p.cfg.Resources.Allocation != nil {
		c.Pod = p.cfg.Resources.Allocation.Allocate(ctx, c.desired, c.Status)
	}
	status := p.report(c.Pod, c.Status, runtime.Termination{})
	if status.Phase == v1.PodSucceeded || status.Phase == v1.PodFailed {
		c.end(podworker.SyncResult{Terminal: true, Idle: true})
		return nil
	}
	p.checkDeadline(c, status)
	return nil
}

func (p *Pipeline) checkNetwork(_ context.Context, c *call) error {
	err := p.cfg.Network()
	if err == nil || c.Pod.Spec.HostNetwork {
		return nil
	}
	err = fmt.Errorf("%w: %w", podworker.ErrNetworkNotReady, err)
	p.event(c.Pod, v1.EventTypeWarning, "NetworkNotReady", err.Error())
	return err
}

func (p *Pipeline) registerObjects(_ context.Context, c *call) error {
	p.cfg.Resources.Objects.Register(c.Pod)
	return nil
}

// createMirror syncs the mirror pod of a static pod. Failures are only logged: a static pod runs
// without the API server.
func (p *Pipeline) createMirror(ctx context.Context, c *call) error {
	if !runtime.IsStatic(c.Pod) {
		return nil
	}
	if err := podworker.SyncMirror(ctx, p.cfg.Mirrors, c.Pod, c.Mirror); err != nil && ctx.Err() == nil {
		p.cfg.Logger.Warn("Failed to sync mirror pod; will retry at the next sync", "pod", c.Pod.Namespace+"/"+c.Pod.Name, "podUID", c.UID, "err", err)
	}
	return nil
}

func (p *Pipeline) mountVolumes(ctx context.Context, c *call) (err error) {
	if c.volumes, err = p.cfg.Resources.Volumes.Mount(ctx, c.Pod); err == nil {
		return nil
	}
	if _, rejected := errors.AsType[*runtime.Rejection](err); !rejected {
		p.failed(ctx, c.Pod, "FailedMount", "Unable to attach or mount volumes: %v", err)
	}
	return fmt.Errorf("pipeline: mount volumes: %w", err)
}

func (p *Pipeline) startProbes(_ context.Context, c *call) error {
	p.cfg.Probes.Add(c.Pod)
	c.probes = p.cfg.Probes.Results(c.Pod)
	return nil
}

func (p *Pipeline) syncContainers(ctx context.Context, c *call) error {
	defer p.cfg.Relister.Pin(c.UID)() // until the relist has been requested
	c.synced = true
	p.setInRuntime(c, true)
	res, err := p.syncPod(ctx, runtime.SyncRequest{Pod: c.Pod, Status: c.Status, Volumes: c.volumes, Probes: c.probes})
	p.setInRuntime(c, false)
	c.result.RetryAt, c.result.Idle = res.RetryAt, len(res.Actions) == 0
	resized, failed := p.resized(ctx, c.desired, res.Actions)
	if starts, isNew := p.storeStartErrors(c.UID, res.Actions); isNew || failed {
		// The runtime does not list a container that did not start or a resize that
		// failed, so no event of the runtime causes a report.
		p.cfg.Status.Report(c.Pod, c.Status, starts, runtime.Termination{})
	}
	switch {
	case resized && !failed:
		c.result.NextSync = earlier(c.result.NextSync, p.reinspect(c.UID, time.Now()))
	case isStarting(c.Status): // its hook has ended without an action, which lists do not show
		p.cfg.Relister.RequestReinspect(c.UID)
	case len(res.Actions) > 0:
		p.cfg.Relister.RequestRelist(c.UID)
	}
	return err
}

// isStarting reports whether a postStart hook was pending.
func isStarting(s *runtime.PodStatus) bool {
	return s != nil && slices.ContainsFunc(s.Containers, func(c runtime.ContainerStatus) bool { return c.Starting })
}

func (p *Pipeline) terminateSteps() []step {
	return []step{
		{ReportTermination, p.reportTermination},
		{StopContainers, p.stopContainers},
		{InspectContainers, p.inspectContainers},
		{UnprepareClaims, when(p.cfg.Resources.Claims != nil, p.unprepareClaims)}, // before a terminal phase is published (rule sl-40)
		{ReportTerminated, p.reportTerminated},
	}
}

// Terminate implements [podworker.Handler].
func (p *Pipeline) Terminate(ctx context.Context, req podworker.SyncRequest) error {
	return p.run(ctx, p.terminate, p.newCall(req))
}

func (p *Pipeline) reportTermination(_ context.Context, c *call) error {
	if c.Pod == nil {
		return nil
	}
	p.report(c.Pod, c.Status, c.Termination)
	if p.cfg.Probes != nil {
		p.cfg.Probes.StopLiveness(c.Pod)
	}
	return nil
}

func (p *Pipeline) stopContainers(ctx context.Context, c *call) error {
	req := runtime.KillRequest{UID: c.UID, Pod: c.desired, Status: c.Status, GracePeriodSeconds: c.GracePeriodSeconds}
	if c.Pod == nil {
		if err := p.cfg.Runtime.KillPod(ctx, req); err != nil {
			return fmt.Errorf("pipeline: kill orphan: %w", err)
		}
		return nil
	}
	p.setInRuntime(c, true)
	err := p.cfg.Runtime.KillPod(ctx, req)
	p.setInRuntime(c, false)
	if err != nil {
		p.failed(ctx, c.Pod, "FailedKillPod", "error killing pod: %v", err)
		return fmt.Errorf("pipeline: kill pod: %w", err)
	}
	if p.cfg.Probes != nil {
		p.cfg.Probes.Remove(c.UID)
	}
	return nil
}

func (p *Pipeline) inspectContainers(ctx context.Context, c *call) (err error) {
	if c.Pod == nil {
		return nil
	}
	if c.last, err = p.cfg.Runtime.PodStatus(ctx, c.UID); err != nil {
		return fmt.Errorf("pipeline: inspect terminated pod: %w", err)
	}
	for _, container := range c.last.Containers {
		if container.State == runtime.ContainerRunning {
			return fmt.Errorf("pipeline: container %s (%s) is running after KillPod succeeded", container.Name, container.ID)
		}
	}
	return nil
}

func (p *Pipeline) unprepareClaims(ctx context.Context, c *call) error {
	if err := p.cfg.Resources.Claims.UnprepareResources(ctx, c.UID); err != nil {
		return fmt.Errorf("pipeline: %w", err)
	}
	return nil
}

func (p *Pipeline) reportTerminated(_ context.Context, c *call) error {
	if c.Pod != nil {
		if len(c.last.IPs) == 0 && c.Status != nil {
			c.last.IPs = c.Status.IPs // those of the removed sandbox remain in the status
		}
		p.reportTerminal(c, c.last)
	}
	p.cfg.Relister.RequestRelist(c.UID)
	return nil
}

// reportTerminal reports a pod whose containers have terminated.
func (p *Pipeline) reportTerminal(c *call, observed *runtime.PodStatus) {
	termination := c.Termination
	termination.Terminal = true
	p.report(c.Pod, observed, termination)
}

func (p *Pipeline) cleanupSteps() []step {
	r := p.cfg.Resources
	return []step{
		{ReportFinal, p.reportFinal},
		{UnmountVolumes, when(r.Volumes != nil, p.unmountVolumes)},
		{UnregisterObjects, when(r.Objects != nil, p.unregisterObjects)},
		{RemoveCgroup, when(r.Cgroups != nil, p.removeCgroup)},
		{ReleaseClaims, when(r.Claims != nil, p.unprepareClaims)}, // without effect after UnprepareClaims (rule dra-2)
		{FinishPod, p.finishPod},
	}
}

// Cleanup implements [podworker.Handler]. Containers and logs are left for garbage collection, so
// that logs can be read until the object is deleted.
func (p *Pipeline) Cleanup(ctx context.Context, req podworker.SyncRequest) error {
	return p.run(ctx, p.cleanup, p.newCall(req))
}

func (p *Pipeline) reportFinal(_ context.Context, c *call) error {
	p.reportTerminal(c, c.Status)
	return nil
}

func (p *Pipeline) unmountVolumes(ctx context.Context, c *call) error {
	if err := p.cfg.Resources.Volumes.Unmount(ctx, c.Pod); err != nil {
		return fmt.Errorf("pipeline: unmount volumes: %w", err)
	}
	return nil
}

func (p *Pipeline) unregisterObjects(_ context.Context, c *call) error {
	p.cfg.Resources.Objects.Unregister(c.UID)
	return nil
}

func (p *Pipeline) removeCgroup(ctx context.Context, c *call) error {
	if err := p.cfg.Resources.Cgroups.Remove(ctx, c.UID); err != nil {
		return fmt.Errorf("pipeline: remove cgroup: %w", err)
	}
	return nil
}

func (p *Pipeline) finishPod(_ context.Context, c *call) error {
	p.cfg.Status.Finish(c.Pod)
	p.mu.Lock()
	delete(p.pods, c.UID)
	p.mu.Unlock()
	if p.cfg.Resources.Allocation != nil {
		p.cfg.Resources.Allocation.Release(c.UID)
	}
	return nil
}
