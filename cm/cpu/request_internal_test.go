package cpu

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Init containers run in turn, sidecars beside them and beside the regular containers.
func TestExclusiveCPUsOfAPodAreThoseAtOneTime(t *testing.T) {
	of := func(cpus string, sidecar bool) v1.Container {
		amounts := v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpus), v1.ResourceMemory: resource.MustParse("1Gi")}
		c := v1.Container{Name: "c", Resources: v1.ResourceRequirements{Requests: amounts, Limits: amounts}}
		if sidecar {
			c.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
		}
		return c
	}
	for name, tt := range map[string]struct {
		inits, containers []v1.Container
		want              int
	}{
		"containers":                           {nil, []v1.Container{of("2", false), of("3", false)}, 5},
		"fractions do not count":               {nil, []v1.Container{of("2", false), of("500m", false)}, 2},
		"the largest init container":           {[]v1.Container{of("4", false), of("6", false), of("1", false)}, []v1.Container{of("2", false)}, 6},
		"fewer than the containers":            {[]v1.Container{of("1", false), of("2", false), of("2", false)}, []v1.Container{of("4", false)}, 4},
		"sidecars beside the containers":       {[]v1.Container{of("1", true), of("2", true)}, []v1.Container{of("4", false)}, 7},
		"sidecars beside later init ones only": {[]v1.Container{of("5", false), of("2", true), of("4", false)}, []v1.Container{of("1", false)}, 6},
		"all sidecars before the containers":   {[]v1.Container{of("5", false), of("2", true)}, []v1.Container{of("1", false)}, 5},
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{InitContainers: tt.inits, Containers: tt.containers}}
		assert.Equal(t, tt.want, podExclusiveCPUs(pod, ""), name)
	}
}
