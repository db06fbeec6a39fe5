package allocation

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestResourcesOfAPod(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	requests := func(cpu string) v1.ResourceRequirements {
		return v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}}
	}
	spec := func() *v1.Pod {
		return &v1.Pod{Spec: v1.PodSpec{
			InitContainers: []v1.Container{{Name: "init", Resources: requests("3")}, {Name: "sidecar", RestartPolicy: &always, Resources: requests("1")}},
			Containers:     []v1.Container{{Name: "a", Resources: requests("1")}, {Name: "b"}},
			Resources:      new(requests("2")),
		}}
	}
	for name, change := range map[string]func(*v1.Pod){
		"unchanged":               func(*v1.Pod) {},
		"the same quantity":       func(p *v1.Pod) { p.Spec.Containers[0].Resources = requests("1000m") },
		"a claim":                 func(p *v1.Pod) { p.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: "gpu"}} },
		"a container":             func(p *v1.Pod) { p.Spec.Containers[0].Resources = requests("2") },
		"a sidecar":               func(p *v1.Pod) { p.Spec.InitContainers[1].Resources = requests("2") },
		"an init container":       func(p *v1.Pod) { p.Spec.InitContainers[0].Resources = requests("2") },
		"the pod":                 func(p *v1.Pod) { p.Spec.Resources = new(requests("4")) },
		"no resources of the pod": func(p *v1.Pod) { p.Spec.Resources = nil },
		"a container less":        func(p *v1.Pod) { p.Spec.Containers = p.Spec.Containers[:1] },
		"another container":       func(p *v1.Pod) { p.Spec.Containers[1].Name = "c" },
		"one more container":      func(p *v1.Pod) { p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "c"}) },
		"requests of one without": func(p *v1.Pod) { p.Spec.Containers[1].Resources = requests("1") },
	} {
		for _, allInit := range []bool{false, true} {
			allocated, pod := desiredResources(spec(), allInit), spec()
			change(pod)
			assert.Equal(t, desiredResources(pod, allInit).Equal(allocated), allocated.areOf(pod, allInit), "%s, all init containers: %t", name, allInit)
		}
	}
	pod := spec()
	allocated := desiredResources(pod, true)
	assert.Zero(t, testing.AllocsPerRun(10, func() { allocated.areOf(pod, true) }), "it is called for each pod whenever one is removed")
}
