package runtime_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

func TestRefsNameThePodAndTheContainer(t *testing.T) { // rt-81
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "prod", UID: "u", ResourceVersion: "7"},
		Spec: v1.PodSpec{
			InitContainers:      []v1.Container{{Name: "setup"}, {Name: "proxy"}},
			Containers:          []v1.Container{{Name: "nginx"}, {Name: "logs"}},
			EphemeralContainers: []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug"}}},
		},
	}
	whole := v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "prod", Name: "web", UID: "u", ResourceVersion: "7"}
	assert.Equal(t, whole, runtime.PodRef(pod))
	for name, path := range map[string]string{
		"setup": "spec.initContainers{setup}",
		"proxy": "spec.initContainers{proxy}",
		"nginx": "spec.containers{nginx}",
		"logs":  "spec.containers{logs}",
		"debug": "spec.ephemeralContainers{debug}",
		"other": "",
		"":      "",
	} {
		want := whole
		want.FieldPath = path
		assert.Equal(t, want, runtime.ContainerRef(pod, name), name)
	}
}
