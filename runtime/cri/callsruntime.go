package cri

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// runtimeCalls decorates a runtime service with [calls], and records the changes that it makes in
// announcements. RunPodSandbox and RestorePod, which may pull an image and wait for the network, have twice the
// timeout.
type runtimeCalls struct {
	calls
	service       internalapi.RuntimeService
	announcements *announcements
}

var _ internalapi.RuntimeService = (*runtimeCalls)(nil)

// Close closes the decorated service.
func (c *runtimeCalls) Close(ctx context.Context) error { return c.service.Close(ctx) }

func (c *runtimeCalls) Version(ctx context.Context, apiVersion string) (*runtimeapi.VersionResponse, error) {
	return call(ctx, &c.calls, "version", c.timeout, func(ctx context.Context) (*runtimeapi.VersionResponse, error) {
		answer, err := c.service.Version(ctx, apiVersion)
		if err == nil {
			err = verifyVersion(answer)
		}
		return answer, err
	})
}

func (c *runtimeCalls) Status(ctx context.Context, verbose bool) (*runtimeapi.StatusResponse, error) {
	return call(ctx, &c.calls, "status", c.timeout, func(ctx context.Context) (*runtimeapi.StatusResponse, error) {
		return c.service.Status(ctx, verbose)
	})
}

func (c *runtimeCalls) RuntimeConfig(ctx context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	return call(ctx, &c.calls, "runtime_config", c.timeout, func(ctx context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
		return c.service.RuntimeConfig(ctx)
	})
}

func (c *runtimeCalls) UpdateRuntimeConfig(ctx context.Context, config *runtimeapi.RuntimeConfig) error {
	return c.do(ctx, "update_runtime_config", c.timeout, func(ctx context.Context) error { return c.service.UpdateRuntimeConfig(ctx, config) })
}

func (c *runtimeCalls) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	id, err := call(ctx, &c.calls, "run_podsandbox", 2*c.timeout, func(ctx context.Context) (string, error) {
		answer, err := c.service.RunPodSandbox(ctx, config, handler)
		if err == nil {
			err = verifyID("sandbox", answer)
		}
		return answer, err
	})
	c.announcements.created(types.UID(config.GetMetadata().GetUid()), id, "", err)
	return id, err
}

func (c *runtimeCalls) StopPodSandbox(ctx context.Context, id string) error {
	err := c.do(ctx, "stop_podsandbox", c.timeout, func(ctx context.Context) error { return c.service.StopPodSandbox(ctx, id) })
	c.announcements.reached(id, progressExited, err)
	return err
}

func (c *runtimeCalls) RemovePodSandbox(ctx context.Context, id string) error {
	err := c.do(ctx, "remove_podsandbox", c.timeout, func(ctx context.Context) error { return c.service.RemovePodSandbox(ctx, id) })
	c.announcements.removed(id, err)
	return err
}

func (c *runtimeCalls) PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	return call(ctx, &c.calls, "podsandbox_status", c.timeout, func(ctx context.Context) (*runtimeapi.PodSandboxStatusResponse, error) {
		answer, err := c.service.PodSandboxStatus(ctx, id, verbose)
		if err == nil {
			err = verifySandbox(answer)
		}
		return answer, err
	})
}

func (c *runtimeCalls) ListPodSandbox(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	return call(ctx, &c.calls, "list_podsandbox", c.timeout, func(ctx context.Context) ([]*runtimeapi.PodSandbox, error) {
		return c.service.ListPodSandbox(ctx, filter)
	})
}

func (c *runtimeCalls) UpdatePodSandboxResources(ctx context.Context, req *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	defer c.announcements.altered(req.GetPodSandboxId())
	return call(ctx, &c.calls, "update_podsandbox_resources", c.timeout, func(ctx context.Context) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
		return c.service.UpdatePodSandboxResources(ctx, req)
	})
}

// checkpointTimeout is the limit of a CheckpointPod without a deadline: the containers are paused meanwhile.
const checkpointTimeout = 15 * time.Second

func (c *runtimeCalls) CheckpointPod(ctx context.Context, req *runtimeapi.CheckpointPodRequest) error {
	limit := checkpointTimeout
	if _, limited := ctx.Deadline(); limited {
		limit = forever
	}
	return c.do(ctx, "checkpoint_pod", limit, func(ctx context.Context) error { return c.service.CheckpointPod(ctx, req) })
}

func (c *runtimeCalls) RestorePod(ctx context.Context, req *runtimeapi.RestorePodRequest) (*runtimeapi.RestorePodResponse, error) {
	answer, err := call(ctx, &c.calls, "restore_pod", 2*c.timeout, func(ctx context.Context) (*runtimeapi.RestorePodResponse, error) {
		answer, err := c.service.RestorePod(ctx, req)
		if err == nil {
			err = verifyRestored(answer, req)
		}
		return answer, err
	})
	uid := types.UID(req.GetConfig().GetMetadata().GetUid())
	c.announcements.created(uid, answer.GetPodSandboxId(), "", err)
	if err == nil {
		for _, of := range answer.GetRestoredContainers() {
			c.announcements.created(uid, of.GetContainerId(), answer.GetPodSandboxId(), nil)
		}
	}
	return answer, err
}

func (c *runtimeCalls) CreateContainer(ctx context.Context, sandboxID string, config *runtimeapi.ContainerConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	id, err := call(ctx, &c.calls, "create_container", c.timeout, func(ctx context.Context) (string, error) {
		answer, err := c.service.CreateContainer(ctx, sandboxID, config, sandbox)
		if err == nil {
			err = verifyID("container", answer)
		}
		return answer, err
	})
	c.announcements.created(types.UID(sandbox.GetMetadata().GetUid()), id, sandboxID, err)
	return id, err
}

func (c *runtimeCalls) StartContainer(ctx context.Context, id string) error {
	err := c.do(ctx, "start_container", c.timeout, func(ctx context.Context) error { return c.service.StartContainer(ctx, id) })
	c.announcements.reached(id, progressRunning, err)
	return err
}

func (c *runtimeCalls) StopContainer(ctx context.Context, id string, grace int64) error {
	err := c.do(ctx, "stop_container", c.limitOfStop(grace), func(ctx context.Context) error { return c.service.StopContainer(ctx, id, grace) })
	c.announcements.reached(id, progressExited, err)
	return err
}

func (c *runtimeCalls) RemoveContainer(ctx context.Context, id string) error {
	err := c.do(ctx, "remove_container", c.timeout, func(ctx context.Context) error { return c.service.RemoveContainer(ctx, id) })
	c.announcements.removed(id, err)
	return err
}

func (c *runtimeCalls) ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	return call(ctx, &c.calls, "list_containers", c.timeout, func(ctx context.Context) ([]*runtimeapi.Container, error) {
		return c.service.ListContainers(ctx, filter)
	})
}

func (c *runtimeCalls) ContainerStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.ContainerStatusResponse, error) {
	return call(ctx, &c.calls, "container_status", c.timeout, func(ctx context.Context) (*runtimeapi.ContainerStatusResponse, error) {
		answer, err := c.service.ContainerStatus(ctx, id, verbose)
		if err == nil {
			err = verifyContainer(answer)
		}
		return answer, err
	})
}

func (c *runtimeCalls) UpdateContainerResources(ctx context.Context, id string, res *runtimeapi.ContainerResources) error {
	err := c.do(ctx, "update_container", c.timeout, func(ctx context.Context) error { return c.service.UpdateContainerResources(ctx, id, res) })
	c.announcements.altered(id)
	return err
}

func (c *runtimeCalls) ReopenContainerLog(ctx context.Context, id string) error {
	return c.do(ctx, "reopen_container_log", c.timeout, func(ctx context.Context) error { return c.service.ReopenContainerLog(ctx, id) })
}

func (c *runtimeCalls) CheckpointContainer(ctx context.Context, req *runtimeapi.CheckpointContainerRequest) error {
	return c.do(ctx, "checkpoint_container", c.limitOfExec(time.Duration(req.GetTimeout())*time.Second), func(ctx context.Context) error { return c.service.CheckpointContainer(ctx, req) })
}

func (c *runtimeCalls) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	stderr, err = call(ctx, &c.calls, "exec_sync", c.limitOfExec(timeout), func(ctx context.Context) ([]byte, error) {
		var stderr []byte
		var err error
		stdout, stderr, err = c.service.ExecSync(ctx, id, cmd, timeout)
		return stderr, err
	})
	return stdout, stderr, classifyExec(ctx, cmd, timeout, err)
}

func (c *runtimeCalls) Exec(ctx context.Context, req *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	return call(ctx, &c.calls, "exec", c.timeout, func(ctx context.Context) (*runtimeapi.ExecResponse, error) {
		return c.service.Exec(ctx, req)
	})
}

func (c *runtimeCalls) Attach(ctx context.Context, req *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	return call(ctx, &c.calls, "attach", c.timeout, func(ctx context.Context) (*runtimeapi.AttachResponse, error) {
		return c.service.Attach(ctx, req)
	})
}

func (c *runtimeCalls) PortForward(ctx context.Context, req *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	return call(ctx, &c.calls, "port_forward", c.timeout, func(ctx context.Context) (*runtimeapi.PortForwardResponse, error) {
		return c.service.PortForward(ctx, req)
	})
}

func (c *runtimeCalls) ContainerStats(ctx context.Context, id string) (*runtimeapi.ContainerStats, error) {
	return call(ctx, &c.calls, "container_stats", c.timeout, func(ctx context.Context) (*runtimeapi.ContainerStats, error) {
		return c.service.ContainerStats(ctx, id)
	})
}

func (c *runtimeCalls) ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	return call(ctx, &c.calls, "list_container_stats", c.timeout, func(ctx context.Context) ([]*runtimeapi.ContainerStats, error) {
		return c.service.ListContainerStats(ctx, filter)
	})
}

func (c *runtimeCalls) PodSandboxStats(ctx context.Context, id string) (*runtimeapi.PodSandboxStats, error) {
	return call(ctx, &c.calls, "podsandbox_stats", c.timeout, func(ctx context.Context) (*runtimeapi.PodSandboxStats, error) {
		return c.service.PodSandboxStats(ctx, id)
	})
}

func (c *runtimeCalls) ListPodSandboxStats(ctx context.Context, filter *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	return call(ctx, &c.calls, "list_podsandbox_stats", c.timeout, func(ctx context.Context) ([]*runtimeapi.PodSandboxStats, error) {
		return c.service.ListPodSandboxStats(ctx, filter)
	})
}

func (c *runtimeCalls) ListMetricDescriptors(ctx context.Context) ([]*runtimeapi.MetricDescriptor, error) {
	return call(ctx, &c.calls, "list_metric_descriptors", c.timeout, func(ctx context.Context) ([]*runtimeapi.MetricDescriptor, error) {
		return c.service.ListMetricDescriptors(ctx)
	})
}

func (c *runtimeCalls) ListPodSandboxMetrics(ctx context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
	return call(ctx, &c.calls, "list_podsandbox_metrics", c.timeout, func(ctx context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
		return c.service.ListPodSandboxMetrics(ctx)
	})
}

func (c *runtimeCalls) GetContainerEvents(ctx context.Context, events chan *runtimeapi.ContainerEventResponse, connected func(runtimeapi.RuntimeService_GetContainerEventsClient)) error {
	return c.do(ctx, "get_container_events", forever, func(ctx context.Context) error {
		return c.service.GetContainerEvents(ctx, events, connected)
	})
}
