package admission_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/allocation/admission"
)

// The resources that a ResourceClaim provides are neither limited by the node's nor part of its use.
func TestRequestsThatAResourceClaimProvidesAreIgnored(t *testing.T) { // adm-4
	const ofClass = "deviceclass.resource.kubernetes.io/gpus"
	node := admission.Node{Allocatable: v1.ResourceList{"cpu": resource.MustParse("1"), "example.com/gpu": resource.MustParse("1")}}
	claimed := func(mappings ...v1.ContainerExtendedResourceRequest) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Status.ExtendedResourceClaimStatus = &v1.PodExtendedResourceClaimStatus{ResourceClaimName: "claim", RequestMappings: mappings}
		}
	}
	of := func(container, resource string) v1.ContainerExtendedResourceRequest {
		return v1.ContainerExtendedResourceRequest{ContainerName: container, ResourceName: resource, RequestName: "container-0-request-0"}
	}
	gpus := func() *v1.Pod { return pod("gpus", true, "example.com/gpu", "2", "cpu", "1") }
	initialized := func(p *v1.Pod) {
		p.Spec.InitContainers = []v1.Container{{Name: "first", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{ofClass: resource.MustParse("2")}}}}
	}
	lacks := func(name string) string {
		return "OutOf" + name + ": Node didn't have enough resource: " + name + ", requested: 2, used: 0, capacity: "
	}
	for name, tc := range map[string]struct {
		pod  *v1.Pod
		want []string
	}{
		"without a claim":               {gpus(), []string{lacks("example.com/gpu") + "1"}},
		"the claim of the container":    {with(gpus(), claimed(of("c", "example.com/gpu"))), nil},
		"that of another container":     {with(gpus(), claimed(of("d", "example.com/gpu"))), []string{lacks("example.com/gpu") + "1"}},
		"a claim without requests":      {with(gpus(), claimed()), []string{lacks("example.com/gpu") + "1"}},
		"a class, without a claim":      {pod("p", true, ofClass, "2"), []string{lacks(ofClass) + "0"}},
		"a class":                       {with(pod("p", true, ofClass, "2"), claimed(of("c", ofClass))), nil},
		"a class, of an init container": {with(with(pod("p", false), initialized), claimed(of("first", ofClass))), nil},
		"no claim provides a native resource": {with(pod("p", true, "cpu", "2"), claimed(of("c", "cpu"))),
			[]string{"OutOfcpu: Node didn't have enough resource: cpu, requested: 2000, used: 0, capacity: 1000"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.pod.DeepCopy()
			var got []string
			for _, f := range admission.Fit(tc.pod, nil, node) {
				got = append(got, f.Reason+": "+f.Message)
			}
			assert.Equal(t, tc.want, got)
			assert.Equal(t, before, tc.pod)
		})
	}

	others := []*v1.Pod{with(pod("claimed", true, "example.com/gpu", "1"), claimed(of("c", "example.com/gpu")))}
	assert.Empty(t, admission.Fit(pod("p", true, "example.com/gpu", "1"), others, node), "the device of the node is free")
}
