package status_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

func list(kv ...string) v1.ResourceList {
	l := v1.ResourceList{}
	for i := 0; i+1 < len(kv); i += 2 {
		l[v1.ResourceName(kv[i])] = resource.MustParse(kv[i+1])
	}
	return l
}

func TestAllocatedAndActualResources(t *testing.T) {
	granted := v1.ResourceRequirements{Requests: list("cpu", "1", "memory", "1Gi", "example.com/gpu", "1"), Limits: list("cpu", "2", "memory", "2Gi", "example.com/gpu", "1")}
	tiny := v1.ResourceRequirements{Requests: list("cpu", "1m"), Limits: list("cpu", "5m")}
	running := func(has *v1.ResourceRequirements) runtime.ContainerStatus {
		c := runningC("a", 0)
		c.Resources = has
		return c
	}
	exited := exitedC("a", 0, 0)
	exited.Resources = &v1.ResourceRequirements{Requests: list("cpu", "7")}
	for name, tc := range map[string]struct {
		granted  v1.ResourceRequirements
		instance runtime.ContainerStatus
		want     *v1.ResourceRequirements
	}{
		"st-15 running: actual": {granted, running(&v1.ResourceRequirements{Requests: list("cpu", "3", "memory", "3Gi"), Limits: list("cpu", "4", "memory", "4Gi")}),
			&v1.ResourceRequirements{Requests: list("cpu", "3", "memory", "3Gi", "example.com/gpu", "1"), Limits: list("cpu", "4", "memory", "4Gi", "example.com/gpu", "1")}},
		"st-15 a limit that is not applied yet, a request without a trace": {granted, running(&v1.ResourceRequirements{Requests: list("cpu", "3")}),
			&v1.ResourceRequirements{Requests: list("cpu", "3", "memory", "1Gi", "example.com/gpu", "1"), Limits: list("example.com/gpu", "1")}},
		"st-15 not running: granted":                    {granted, exited, &v1.ResourceRequirements{Requests: granted.Requests, Limits: granted.Limits}},
		"st-15 not known: granted":                      {granted, running(nil), &v1.ResourceRequirements{Requests: granted.Requests, Limits: granted.Limits}},
		"st-15 at the least shares and quota: granted":  {tiny, running(&v1.ResourceRequirements{Requests: list("cpu", "2m"), Limits: list("cpu", "10m")}), &tiny},
		"st-15 above them: actual":                      {tiny, running(&v1.ResourceRequirements{Requests: list("cpu", "3m"), Limits: list("cpu", "11m")}), &v1.ResourceRequirements{Requests: list("cpu", "3m"), Limits: list("cpu", "11m")}},
		"st-15 the least memory is memory like any":     {v1.ResourceRequirements{Limits: list("memory", "1Gi")}, running(&v1.ResourceRequirements{Limits: list("memory", "1")}), &v1.ResourceRequirements{Limits: list("memory", "1")}},
		"st-15 nothing granted, and the least is shown": {v1.ResourceRequirements{}, running(&v1.ResourceRequirements{Requests: list("cpu", "2m")}), &v1.ResourceRequirements{}},
		"st-15 nothing granted, something there":        {v1.ResourceRequirements{}, running(&v1.ResourceRequirements{Limits: list("memory", "1Gi")}), &v1.ResourceRequirements{Limits: list("memory", "1Gi")}},
		"st-15 unrequested resources are not reported":  {v1.ResourceRequirements{}, running(nil), &v1.ResourceRequirements{}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podOf(v1.RestartPolicyAlways, "a")
			pod.Spec.Containers[0].Resources = tc.granted
			before := pod.DeepCopy()
			f := status.Facts{Pod: pod, Observed: seen(tc.instance), Now: t0}
			s := status.Compute(f)
			assert.Equal(t, before, pod)
			got := s.ContainerStatuses[0]
			assert.True(t, status.Equal(
				&v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{AllocatedResources: tc.granted.Requests, Resources: tc.want}}},
				&v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{AllocatedResources: got.AllocatedResources, Resources: got.Resources}}},
			), "al-1: got %v and %v", got.AllocatedResources, got.Resources)
			f.Previous = s
			again := status.Compute(f)
			assert.True(t, status.Equal(&s, &again))
		})
	}
	t.Run("st-15 a limit of the pod is not the container's", func(t *testing.T) {
		pod := podOf(v1.RestartPolicyAlways, "a")
		pod.Spec.Resources = &v1.ResourceRequirements{Limits: list("cpu", "1", "memory", "1Gi")}
		pod.Spec.Containers[0].Resources = v1.ResourceRequirements{Limits: list("cpu", "500m")}
		s := status.Compute(status.Facts{Pod: pod, Observed: seen(running(&v1.ResourceRequirements{Limits: list("cpu", "600m", "memory", "1Gi")})), Now: t0})
		assert.Equal(t, "600m", s.ContainerStatuses[0].Resources.Limits.Cpu().String())
		assert.NotContains(t, s.ContainerStatuses[0].Resources.Limits, v1.ResourceMemory)
	})
	t.Run("nothing while there is no instance", func(t *testing.T) {
		pod := podOf(v1.RestartPolicyAlways, "a")
		pod.Spec.Containers[0].Resources = granted
		s := status.Compute(status.Facts{Pod: pod, Observed: seen(), Now: t0})
		assert.Nil(t, s.ContainerStatuses[0].Resources)
		assert.Nil(t, s.ContainerStatuses[0].AllocatedResources)
	})
}

func TestResourcesOfThePodAsAWhole(t *testing.T) { // al-1
	pod := func(spec *v1.ResourceRequirements, containers ...v1.ResourceRequirements) *v1.Pod {
		p := podOf(v1.RestartPolicyAlways)
		p.Spec.Resources = spec
		for i, r := range containers {
			p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: string(rune('a' + i)), Resources: r})
		}
		return p
	}
	requests := func(kv ...string) v1.ResourceRequirements { return v1.ResourceRequirements{Requests: list(kv...)} }
	whole := &v1.ResourceRequirements{Requests: list("cpu", "1"), Limits: list("cpu", "2")}
	withInit := pod(nil, requests("cpu", "50m", "memory", "16Mi"))
	withInit.Spec.InitContainers = []v1.Container{{Name: "i", Resources: requests("cpu", "150m")}}
	for name, tc := range map[string]struct {
		pod       *v1.Pod
		given     *v1.ResourceRequirements
		end       runtime.Termination
		allocated v1.ResourceList
		actual    *v1.ResourceRequirements
	}{
		"no requests":         {pod: pod(nil, v1.ResourceRequirements{}), actual: &v1.ResourceRequirements{}},
		"those of containers": {pod: pod(nil, requests("cpu", "1"), v1.ResourceRequirements{Requests: list("cpu", "2"), Limits: list("memory", "1Gi")}), allocated: list("cpu", "3"), actual: &v1.ResourceRequirements{Requests: list("cpu", "3"), Limits: list("memory", "1Gi")}},
		"an init container":   {pod: withInit, allocated: list("cpu", "150m", "memory", "16Mi"), actual: &v1.ResourceRequirements{Requests: list("cpu", "150m", "memory", "16Mi")}},
		"pod-level resources": {pod: pod(whole, requests("cpu", "500m")), allocated: whole.Requests, actual: whole},
		"those given last":    {pod: pod(whole), given: &v1.ResourceRequirements{Limits: list("cpu", "9")}, allocated: whole.Requests, actual: &v1.ResourceRequirements{Limits: list("cpu", "9")}},
		"a rejected pod":      {pod: pod(whole), end: runtime.Termination{Failed: true, Reason: "NodeAffinity"}},
	} {
		if runtime.KubernetesMinor >= 38 && name == "those of containers" {
			tc.actual.Limits = nil // one of them has none
		}
		t.Run(name, func(t *testing.T) {
			f := status.Facts{Pod: tc.pod, Termination: tc.end, Resize: status.Resize{PodLevel: tc.given}, Now: t0}
			got := status.Compute(f)
			assert.True(t, status.Equal(
				&v1.PodStatus{AllocatedResources: tc.allocated, Resources: tc.actual},
				&v1.PodStatus{AllocatedResources: got.AllocatedResources, Resources: got.Resources},
			), "got %v and %v", got.AllocatedResources, got.Resources)
		})
	}
}

func TestResizeConditionsAreShownWhileTheyAreTrue(t *testing.T) { // st-36, st-38, st-51, al-12
	pod := podOf(v1.RestartPolicyAlways, "a")
	pod.Generation = 7
	pod.Status.Conditions = []v1.PodCondition{
		{Type: "example.com/theirs", Status: v1.ConditionTrue},
		{Type: v1.PodResizePending, Status: v1.ConditionTrue, Reason: "of an earlier agent"},
		{Type: v1.DisruptionTarget, Status: v1.ConditionTrue},
	}
	f := status.Facts{Pod: pod, Observed: seen(), Now: t0, Resize: status.Resize{Conditions: []v1.PodCondition{
		{Type: v1.PodResizePending, Status: v1.ConditionTrue, Reason: v1.PodReasonDeferred, ObservedGeneration: 6},
		{Type: v1.PodResizeInProgress, Status: v1.ConditionTrue, ObservedGeneration: 5},
		{Type: v1.PodReady, Status: v1.ConditionTrue, Reason: "not theirs"},
	}}}
	s := status.Compute(f)
	var order []string
	for _, c := range s.Conditions[:5] {
		order = append(order, string(c.Type))
	}
	assert.Equal(t, []string{"example.com/theirs", "PodResizePending", "PodResizeInProgress", "DisruptionTarget", "PodReadyToStartContainers"}, order, "st-38")
	pending := status.Condition(s.Conditions, v1.PodResizePending)
	assert.Equal(t, int64(6), pending.ObservedGeneration, "al-12: of the resize, not of the report")
	assert.Equal(t, "Deferred", pending.Reason)
	assert.False(t, status.IsReady(&s))

	since := pending.LastTransitionTime
	f.Previous, f.Now = s, t0.Add(3e12)
	s = status.Compute(f)
	require.NotNil(t, status.Condition(s.Conditions, v1.PodResizePending))
	assert.Equal(t, since, status.Condition(s.Conditions, v1.PodResizePending).LastTransitionTime, "st-51")
	f.Previous, f.Resize = s, status.Resize{}
	s = status.Compute(f)
	assert.Nil(t, status.Condition(s.Conditions, v1.PodResizePending), "al-12: removed when done")
	assert.Nil(t, status.Condition(s.Conditions, v1.PodResizeInProgress))
}
