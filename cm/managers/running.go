package managers

import (
	"context"
	"fmt"
	"log/slog"

	"k8s.io/apimachinery/pkg/types"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm/cpu"
	"github.com/kubeparts/kubeparts/cm/device"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/logs"
)

// Labels of the containers that the kubelet creates.
const (
	podUIDLabel    = "io.kubernetes.pod.uid"
	containerLabel = "io.kubernetes.container.name"
)

// A CRI is the runtime whose running containers have CPUs and devices. Logger gets
// failed calls at the debug level and must not be nil. Its methods are safe for
// concurrent use.
type CRI struct {
	Runtime internalapi.RuntimeService
	Logger  *slog.Logger

	// Owns reports whether a pod belongs to this node: containers of other pods are
	// neither adopted nor changed. If nil, all pods do.
	Owns func(uid types.UID) bool
}

// Running returns the CPUs and devices of the running containers, with which the
// managers restore allocations whose state is lost or no longer valid. A container whose
// status cannot be read is returned without CPUs.
func (c CRI) Running(ctx context.Context) ([]cpu.Running, []device.Adopted, error) {
	ctx = logs.Context(ctx, c.Logger)
	list, err := c.list(ctx)
	if err != nil {
		return nil, nil, err
	}
	var running []cpu.Running
	var adopted []device.Adopted
	for _, container := range list {
		uid, name := owner(container)
		if uid == "" {
			continue
		}
		r := cpu.Running{PodUID: uid, Container: name}
		if st, err := c.Runtime.ContainerStatus(ctx, container.Id, false); err == nil {
			linux := st.GetStatus().GetResources().GetLinux()
			if cpus, err := topology.ParseCPUs(linux.GetCpusetCpus()); err == nil {
				r.CPUs, r.Exclusive = cpus, cpu.LooksExclusive(cpus, linux.GetCpuShares())
			}
		}
		running = append(running, r)
		if a := adoptedDevices(uid, name, container.Annotations); a != nil {
			adopted = append(adopted, *a)
		}
	}
	return running, adopted, nil
}

// Containers returns the running containers, for cpu.Runtime.
func (c CRI) Containers(ctx context.Context) ([]cpu.Container, error) {
	list, err := c.list(logs.Context(ctx, c.Logger))
	var out []cpu.Container
	for _, container := range list {
		if uid, name := owner(container); uid != "" {
			out = append(out, cpu.Container{PodUID: uid, Name: name, ID: container.Id})
		}
	}
	return out, err
}

// UpdateCPUs sets the CPUs of a container, for cpu.Runtime.
func (c CRI) UpdateCPUs(ctx context.Context, id string, cpus cpuset.CPUSet) error {
	return c.Runtime.UpdateContainerResources(logs.Context(ctx, c.Logger), id, &runtimeapi.ContainerResources{
		Linux: &runtimeapi.LinuxContainerResources{CpusetCpus: cpus.String()},
	})
}

func (c CRI) list(ctx context.Context) ([]*runtimeapi.Container, error) {
	list, err := c.Runtime.ListContainers(ctx, &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}})
	if err != nil {
		return nil, fmt.Errorf("list running containers: %w", err)
	}
	if c.Owns == nil {
		return list, nil
	}
	var ours []*runtimeapi.Container
	for _, container := range list {
		if uid, _ := owner(container); c.Owns(uid) {
			ours = append(ours, container)
		}
	}
	return ours, nil
}

// owner returns the pod and the name of a container; an empty UID if the kubelet did not
// create it.
func owner(c *runtimeapi.Container) (types.UID, string) {
	return types.UID(c.Labels[podUIDLabel]), c.Labels[containerLabel]
}
