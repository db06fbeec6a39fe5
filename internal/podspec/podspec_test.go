package podspec_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

func TestContainersAreYieldedInTheOrderInWhichTheyStart(t *testing.T) {
	pod := &v1.Pod{Spec: v1.PodSpec{
		InitContainers:      []v1.Container{{Name: "setup"}, {Name: "proxy", RestartPolicy: new(v1.ContainerRestartPolicyAlways)}},
		Containers:          []v1.Container{{Name: "web"}, {Name: "log"}},
		EphemeralContainers: []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug"}}},
	}}
	var names, all []string
	for c := range podspec.Containers(pod) {
		names = append(names, c.Name)
	}
	for c := range podspec.AllContainers(pod) {
		all = append(all, c.Name)
	}
	assert.Equal(t, []string{"setup", "proxy", "web", "log"}, names)
	assert.Equal(t, []string{"setup", "proxy", "web", "log", "debug"}, all)
	for c := range podspec.AllContainers(pod) { // a caller may stop anywhere
		if c.Name == "proxy" {
			break
		}
	}
	assert.Same(t, &pod.Spec.Containers[0], podspec.Container(pod, "web"))
	assert.Equal(t, "debug", podspec.Container(pod, "debug").Name)
	assert.Nil(t, podspec.Container(pod, "other"))
	assert.True(t, podspec.RunsToCompletion(pod, "setup"))
	assert.False(t, podspec.RunsToCompletion(pod, "proxy"))
	assert.False(t, podspec.RunsToCompletion(pod, "web"))
}

// cpu-12
func TestAPodHasNoQuotaOnExclusiveCPUs(t *testing.T) {
	pod := &v1.Pod{Spec: v1.PodSpec{InitContainers: []v1.Container{{Name: "init"}}, Containers: []v1.Container{{Name: "a"}, {Name: "b"}}}}
	assert.False(t, podspec.NoQuota(pod, nil))
	assert.True(t, podspec.NoQuota(pod, []string{"a"}))
	pod.Spec.Resources = &v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")}}
	assert.False(t, podspec.NoQuota(pod, []string{"a", "b"}), "init shares the pod's CPUs")
	assert.True(t, podspec.NoQuota(pod, []string{"init", "a", "b"}))
}

func TestLongRunningContainersAreSidecarsAndThenRegularOnes(t *testing.T) {
	side := v1.Container{Name: "side", RestartPolicy: new(v1.ContainerRestartPolicyAlways)}
	pod := &v1.Pod{Spec: v1.PodSpec{
		InitContainers: []v1.Container{{Name: "init"}, side, {Name: "last"}},
		Containers:     []v1.Container{{Name: "a"}, {Name: "b"}},
	}}
	var names []string
	for c := range podspec.LongRunning(pod) {
		names = append(names, c.Name)
	}
	assert.Equal(t, []string{"side", "a", "b"}, names)
	for c := range podspec.LongRunning(pod) {
		assert.Same(t, &pod.Spec.InitContainers[1], c)
		break
	}
}
