package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/admission"
	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/runtime"
)

// asks returns a static pod of that priority that asks for so much memory.
func asks(name string, priority int32, memory string) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "default", UID: types.UID(name), Annotations: map[string]string{"kubernetes.io/config.source": "file"},
	}}
	pod.Spec.Priority = &priority
	pod.Spec.Containers = []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceMemory: resource.MustParse(memory)},
	}}}
	return pod
}

func TestTheNodeGivesOutWhatTheMachineHas(t *testing.T) { // adm-5, adm-7, adm-10 … adm-12
	admit := fits(func() admission.Node {
		return thisNode("node", 110, v1.ResourceList{v1.ResourceMemory: resource.MustParse("4Gi")})
	}, nobody)
	ask := func(pod *v1.Pod, others ...*v1.Pod) *runtime.Rejection {
		return admit(context.Background(), allocation.Request{Operation: allocation.Add, Pod: pod, Others: others})
	}
	api := func(pod *v1.Pod) *v1.Pod {
		pod.Annotations = map[string]string{"kubernetes.io/config.source": "api"}
		return pod
	}
	assert.Nil(t, ask(asks("web", 0, "4Gi")))
	assert.Equal(t, "OutOfmemory", ask(api(asks("web", 0, "5Gi"))).Reason)

	// A critical pod has others give way: the few that make the room.
	low, small := asks("low", 1, "3Gi"), asks("small", 1, "100Mi")
	refusal := ask(asks("vital", 1000, "2Gi"), low, small)
	require.NotNil(t, refusal)
	assert.Equal(t, "OutOfmemory", refusal.Reason)
	assert.Equal(t, []types.UID{"low"}, refusal.Preempt)

	// None that comes before it, and none of which there is only a record.
	refusal = ask(asks("vital", 0, "2Gi"), low)
	assert.Equal(t, "UnexpectedAdmissionError", refusal.Reason)
	assert.Regexp(t, "^Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: ", refusal.Message)
	low.Annotations = nil
	assert.Empty(t, ask(asks("vital", 1000, "2Gi"), low).Preempt)

	// What is not about room is no reason to end anybody.
	elsewhere := asks("vital", 1000, "2Gi")
	elsewhere.Spec.NodeName = "elsewhere"
	assert.Empty(t, ask(elsewhere, asks("low", 1, "3Gi")).Preempt)

	// What the machine does not tell is not limited; the number of pods is.
	unknown := fits(func() admission.Node { return thisNode("node", 110, nil) }, nobody)
	assert.Nil(t, unknown(context.Background(), allocation.Request{Operation: allocation.Add, Pod: asks("web", 0, "400Ti")}))
	var full []*v1.Pod
	for range 110 {
		full = append(full, api(asks("other", 0, "0")))
	}
	assert.Equal(t, "OutOfpods", ask(api(asks("web", 0, "0")), full...).Reason)
}

func nobody(types.UID) bool { return false }

// The API server has removed a pod that may take no time to end, and the scheduler has
// given its room to another one, while its containers are still being stopped.
func TestAPodWaitsForTheRoomOfThoseWhoAreLeaving(t *testing.T) { // sl-19, sl-23
	admit := fits(func() admission.Node {
		return thisNode("node", 110, v1.ResourceList{v1.ResourceMemory: resource.MustParse("4Gi")})
	}, func(uid types.UID) bool { return uid == "leaving" })
	ask := func(pod *v1.Pod, others ...*v1.Pod) *runtime.Rejection {
		pod.Annotations = map[string]string{"kubernetes.io/config.source": "api"}
		return admit(t.Context(), allocation.Request{Operation: allocation.Add, Pod: pod, Others: others})
	}
	leaving, web := asks("leaving", 0, "3Gi"), asks("web", 0, "2Gi")
	refusal := ask(asks("new", 0, "2Gi"), leaving)
	require.NotNil(t, refusal)
	assert.Equal(t, "OutOfmemory", refusal.Reason)
	assert.Equal(t, []types.UID{"leaving"}, refusal.Preempt, "it is waited for")

	assert.Nil(t, ask(asks("new", 0, "1Gi"), leaving), "there is room for both")
	assert.Empty(t, ask(asks("new", 0, "3Gi"), leaving, web).Preempt, "it would not fit then, either")
	critical := ask(asks("new", 2_000_000_000, "2Gi"), leaving, web)
	assert.Equal(t, []types.UID{"leaving"}, critical.Preempt, "nobody has to go who would stay")
}

func TestFieldsWithoutEffectAreReportedOnceAPodIsAdmitted(t *testing.T) {
	var events []runtime.Event
	a := &assembly{record: func(e runtime.Event) { events = append(events, e) }}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}}
	a.reportIgnored(p)
	require.Empty(t, events)
	windows := &v1.SecurityContext{WindowsOptions: &v1.WindowsSecurityContextOptions{RunAsUserName: new("x")}}
	for range 12 {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{SecurityContext: windows})
	}
	a.reportIgnored(p)
	require.Len(t, events, 1)
	require.Equal(t, v1.EventTypeWarning, events[0].Type)
	require.Equal(t, "IgnoredFields", events[0].Reason)
	require.Contains(t, events[0].Message, "spec.containers[0].securityContext.windowsOptions is ignored: it applies to Windows only; ")
	require.Contains(t, events[0].Message, "; and 2 more")
}
