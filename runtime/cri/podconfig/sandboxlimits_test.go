package podconfig

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The sum of the limits of some containers would limit a virtual machine in which the others have no
// limit (kubernetes/kubernetes#141014).
func TestASandboxHasNoLimitThatAContainerLacks(t *testing.T) { // rt-23
	container := func(cpu, memory string) v1.Container {
		limits := v1.ResourceList{}
		if cpu != "" {
			limits[v1.ResourceCPU] = resource.MustParse(cpu)
		}
		if memory != "" {
			limits[v1.ResourceMemory] = resource.MustParse(memory)
		}
		return v1.Container{Resources: v1.ResourceRequirements{Limits: limits, Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}}}
	}
	of := func(containers ...v1.Container) (cpuQuota, memory int64) {
		r := podResources(PodInput{Node: Node{}, Pod: &v1.Pod{Spec: v1.PodSpec{Containers: containers}}})
		assert.Equal(t, int64(1024*len(containers)), r.CpuShares, "requests are summed")
		return r.CpuQuota, r.MemoryLimitInBytes
	}
	cpu, memory := of(container("2", "1Mi"), container("1", "1Mi"))
	assert.Equal(t, []int64{300000, 2 << 20}, []int64{cpu, memory})
	cpu, memory = of(container("2", "1Mi"), container("", "1Mi"))
	assert.LessOrEqual(t, cpu, int64(0))
	assert.Equal(t, int64(2<<20), memory)
	cpu, memory = of(container("2", "1Mi"), container("1", ""))
	assert.Equal(t, int64(300000), cpu)
	assert.Zero(t, memory)
}
