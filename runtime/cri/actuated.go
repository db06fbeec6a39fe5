package cri

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/runtime"
)

// reported converts the resources that the runtime reports for a running container; nil
// if it reports none. The memory request is not reported, and CPU is rounded.
func reported(res *runtimeapi.LinuxContainerResources) *v1.ResourceRequirements {
	if res.GetCpuShares() == 0 { // a running container has at least 2
		return nil
	}
	out := &v1.ResourceRequirements{Requests: v1.ResourceList{}, Limits: v1.ResourceList{}}
	if res.CpuShares > 2 { // the minimum, which also means no request
		out.Requests[v1.ResourceCPU] = *resource.NewMilliQuantity((res.CpuShares*1000+1023)/1024, resource.DecimalSI)
	}
	if res.CpuQuota > 0 && res.CpuPeriod > 0 {
		out.Limits[v1.ResourceCPU] = *resource.NewMilliQuantity(cgroups.MilliOfQuota(res.CpuQuota, res.CpuPeriod), resource.DecimalSI)
	}
	if res.MemoryLimitInBytes > 0 {
		out.Limits[v1.ResourceMemory] = *resource.NewQuantity(res.MemoryLimitInBytes, resource.BinarySI)
	}
	return out
}

// actuatedIn returns a copy of status with the resources of the checkpoint, so that a
// resize that the runtime does not report is not repeated. status is not modified.
func (rec *podCheckpoint) actuatedIn(status *runtime.PodStatus) *runtime.PodStatus {
	var changed *runtime.PodStatus
	for i := range status.Containers {
		c := &status.Containers[i]
		given, ok := rec.Actuated[c.Name]
		if !ok || given.ID != bare(c.ID) || c.Resources != nil && allocation.EqualResources(&given.Resources, c.Resources) {
			continue
		}
		if changed == nil {
			changed = new(*status)
			changed.Containers = slices.Clone(status.Containers)
		}
		changed.Containers[i].Resources = &given.Resources
	}
	if changed == nil {
		return status
	}
	return changed
}
