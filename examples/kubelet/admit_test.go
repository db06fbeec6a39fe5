package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/admission"
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

func TestTheNodeGivesOutWhatTheMachineHas(t *testing.T) { // adm-5, adm-7
	reasons := func(pod *v1.Pod, others []*v1.Pod, node admission.Node) (reasons []string) {
		for _, f := range admission.Check(pod, others, node) {
			reasons = append(reasons, f.Reason)
		}
		return reasons
	}
	node := thisNode("node", 110, v1.ResourceList{v1.ResourceMemory: resource.MustParse("4Gi")})
	assert.Empty(t, reasons(asks("web", 0, "4Gi"), nil, node))
	assert.Equal(t, []string{"OutOfmemory"}, reasons(asks("web", 0, "5Gi"), nil, node))
	assert.Empty(t, reasons(asks("web", 0, "400Ti"), nil, thisNode("node", 110, nil)), "memory that the machine does not report is not limited")
	assert.Equal(t, []string{"OutOfpods"}, reasons(asks("web", 0, "0"), slices.Repeat([]*v1.Pod{asks("other", 0, "0")}, 110), node))
}
