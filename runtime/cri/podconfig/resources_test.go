package podconfig

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// list returns a resource list of CPU and memory; "" omits one.
func list(cpu, memory string) v1.ResourceList {
	l := v1.ResourceList{}
	if cpu != "" {
		l[v1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		l[v1.ResourceMemory] = resource.MustParse(memory)
	}
	return l
}

func TestLinuxResources(t *testing.T) {
	for _, tc := range []struct {
		name                              string
		requestCPU, limitCPU, limitMemory string
		shares, quota, memory             int64
	}{
		{"nothing cm-1", "", "", "", 2, 0, 0},
		{"request", "250m", "", "", 256, 0, 0},
		{"limit stands in for the request cm-32", "", "500m", "1Gi", 512, 50000, 1 << 30},
		{"a request of zero is a request", "0", "500m", "", 2, 50000, 0},
		{"least quota cm-2", "1m", "1m", "", 2, 1000, 0},
		{"most shares cm-1", "1000", "", "", 262144, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Node{}.basic(list(tc.requestCPU, ""), list(tc.limitCPU, tc.limitMemory))
			assert.Equal(t, []int64{tc.shares, tc.quota, tc.memory}, []int64{got.CpuShares, got.CpuQuota, got.MemoryLimitInBytes})
		})
	}
}

func TestOOMScores(t *testing.T) {
	const capacity = 4 << 30
	with := func(requests, limits v1.ResourceList) v1.Container {
		return v1.Container{Name: "c", Resources: v1.ResourceRequirements{Requests: requests, Limits: limits}}
	}
	one := func(c v1.Container) *v1.Pod { return &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{c}}} }
	best, all := with(nil, nil), with(nil, list("1", "1Gi"))
	critical := one(best)
	critical.Spec.PriorityClassName = "system-node-critical"
	sidecar := with(nil, nil)
	sidecar.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
	withSidecar := one(with(list("", "1Gi"), nil))
	withSidecar.Spec.InitContainers = []v1.Container{sidecar}
	for _, tc := range []struct { // cm-35
		name     string
		pod      *v1.Pod
		c        *v1.Container
		capacity int64
		want     int64
	}{
		{"best effort", one(best), nil, capacity, 1000},
		{"guaranteed", one(all), nil, capacity, -997},
		{"critical", critical, nil, capacity, -997},
		{"a quarter of the memory", one(with(list("", "1Gi"), nil)), nil, capacity, 750},
		{"a small request is not 1000", one(with(list("1", ""), nil)), nil, capacity, 999},
		{"everything is not guaranteed", one(with(list("", "4Gi"), nil)), nil, capacity, 3},
		{"more than the capacity", one(with(list("", "400Ei"), nil)), nil, capacity, 3},
		{"unknown capacity", one(with(list("", "1Gi"), nil)), nil, 0, 999},
		{"a sidecar of the pod cm-36", withSidecar, &withSidecar.Spec.InitContainers[0], capacity, 750},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.c == nil {
				tc.c = &tc.pod.Spec.Containers[0]
			}
			assert.Equal(t, tc.want, oomScoreAdj(Node{MemoryBytes: tc.capacity}, tc.pod, tc.c))
		})
	}
}
