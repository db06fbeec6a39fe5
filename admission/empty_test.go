package admission_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/admission"
)

func TestAPodWithoutContainersIsRefused(t *testing.T) {
	pod := &v1.Pod{Spec: v1.PodSpec{InitContainers: []v1.Container{{Name: "i"}}}}
	assert.Equal(t, admission.NoContainersReason, admission.Empty(pod).Reason)
	pod.Spec.Containers = []v1.Container{{Name: "c"}}
	assert.Nil(t, admission.Empty(pod))
}
