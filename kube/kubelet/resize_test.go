package kubelet

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

func TestResizesThatThisNodeCannotCarryOut(t *testing.T) {
	list := func(cpu, memory string) v1.ResourceList {
		return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}
	}
	pod := func(requests, limits v1.ResourceList) *v1.Pod {
		return &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: requests, Limits: limits}}}}}
	}
	guaranteed := func(cpu, memory string) *v1.Pod { return pod(list(cpu, memory), list(cpu, memory)) }
	burstable := func(cpu, memory string) *v1.Pod { return pod(list(cpu, memory), nil) }
	swap := podconfig.Swap{Controller: true, Limited: true, Bytes: 1 << 30}
	const static, moreStatic = "--cpu-manager-policy=static", "--memory-manager-policy=Static"
	for name, tc := range map[string]struct {
		flags            []string
		runtime          connected
		granted, desired *v1.Pod
		want             string
	}{
		"neither policy":          {nil, connected{managers: new(nodeManagers)}, guaranteed("1", "1Gi"), guaranteed("2", "2Gi"), ""},
		"CPU, static":             {[]string{static}, connected{managers: new(nodeManagers)}, guaranteed("1", "1Gi"), guaranteed("2", "1Gi"), "the cpu of a Guaranteed pod cannot be resized under a static CPU manager"},
		"memory, CPUs are static": {[]string{static}, connected{managers: new(nodeManagers)}, guaranteed("1", "1Gi"), guaranteed("1", "2Gi"), ""},
		"memory, static":          {[]string{moreStatic}, connected{managers: new(nodeManagers)}, guaranteed("1", "1Gi"), guaranteed("1", "2Gi"), "the memory of a Guaranteed pod cannot be resized under a static memory manager"},
		"not Guaranteed":          {[]string{static, moreStatic}, connected{managers: new(nodeManagers)}, burstable("1", "1Gi"), burstable("2", "2Gi"), ""},
		"it swaps":                {nil, connected{managers: new(nodeManagers), facts: podconfig.Node{CgroupVersion: 2, Swap: swap}}, burstable("1", "1Gi"), burstable("1", "2Gi"), "the memory of container c, which may swap, cannot be resized without a restart"},
		"plain processes":         {nil, connected{noResize: "plain processes have no limits"}, burstable("1", "1Gi"), burstable("1", "2Gi"), "plain processes have no limits"},
	} {
		o, err := parseFlags(append([]string{"--manifests=/none"}, tc.flags...))
		require.NoError(t, err, name)
		assert.Equal(t, tc.want, tc.runtime.resizes(o.kubelet).Feasible(tc.desired, tc.granted), name)
	}
}
