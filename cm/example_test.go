package cm_test

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// The node's allocatable resources, the cgroup of a pod, and its settings: functions
// that need no machine.
func Example() {
	capacity := v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("8Gi")}
	pods := cm.Allocatable(capacity, cm.Reserved{System: v1.ResourceList{v1.ResourceCPU: resource.MustParse("500m"), v1.ResourceMemory: resource.MustParse("1Gi")}})
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		q := pods[name]
		fmt.Println(name, q.String())
	}

	pod := new(v1.Pod)
	pod.UID, pod.Status.QOSClass = "0001", v1.PodQOSBurstable
	pod.Spec.Containers = []v1.Container{{Name: "web", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("250m")},
		Limits:   v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), v1.ResourceMemory: resource.MustParse("64Mi")},
	}}}
	name := cm.PodName(nil, pod)
	fmt.Println(name.Path(cgroups.Cgroupfs))
	fmt.Println(name.Path(cgroups.Systemd))
	set := cm.Policy{}.PodResources(pod)
	fmt.Println(*set.CPUShares, *set.CPUQuota, *set.Memory)
	// Output:
	// cpu 3500m
	// memory 7Gi
	// /kubepods/burstable/pod0001
	// /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0001.slice
	// 256 100000 67108864
}
