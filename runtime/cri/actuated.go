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

// reported turns what the runtime says of a running container's resources into
// requests and limits: nil if it says nothing. The memory request is not among
// them, and CPU comes back rounded (rt-13).
func reported(res *runtimeapi.LinuxContainerResources) *v1.ResourceRequirements {
	if res.GetCpuShares() == 0 { // what runs has some
		return nil
	}
	out := &v1.ResourceRequirements{Requests: v1.ResourceList{}, Limits: v1.ResourceList{}}
	if res.CpuShares > 2 { // the least there is, which no request gives too
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

// actuatedIn returns status with the resources on record in place of those it
// shows. A resize that was not seen since, as no list shows one, is so not done
// again. The status handed in is not changed.
func (rec *record) actuatedIn(status *runtime.PodStatus) *runtime.PodStatus {
	var changed *runtime.PodStatus
	for i := range status.Containers {
		c := &status.Containers[i]
		given, ok := rec.Actuated[c.Name]
		if !ok || given.ID != bare(c.ID) || c.Resources != nil && allocation.Equal(&given.Resources, c.Resources) {
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
