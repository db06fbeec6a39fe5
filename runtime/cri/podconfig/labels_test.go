package podconfig_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// The labels and annotations of a container are sufficient to stop it, and to compare
// it with a spec, without the spec that it was created from (rt-15).
func TestAnnotationsAreReadBack(t *testing.T) {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "prod", UID: "u-1", DeletionGracePeriodSeconds: new(int64(7))},
		Spec: v1.PodSpec{TerminationGracePeriodSeconds: new(int64(30)), Containers: []v1.Container{{
			Name: "a", Image: "img", Ports: []v1.ContainerPort{{Name: "http", ContainerPort: 80}},
			Lifecycle: &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 3}}},
		}}},
	}
	c := &pod.Spec.Containers[0]
	config, err := podconfig.Container(podconfig.PodInput{Pod: pod}, podconfig.ContainerInput{Container: c, RestartCount: 4})
	require.NoError(t, err)
	a := config.Annotations
	assert.Equal(t, plan.Hash(c), podconfig.HashOf(a))
	assert.Equal(t, int32(4), podconfig.RestartCountOf(a))
	assert.Equal(t, int64(7), *podconfig.SecondsOf(a, podconfig.AnnotationDeletionGrace))
	assert.Equal(t, int64(30), *podconfig.SecondsOf(a, podconfig.AnnotationTerminationGrace))
	assert.Equal(t, c.Lifecycle.PreStop, podconfig.PreStopOf(a))
	assert.Equal(t, c.Ports, podconfig.PortsOf(a))
}

func TestInvalidAnnotationsAreIgnored(t *testing.T) { // rt-14
	for name, text := range map[string]string{"missing": "", "broken": "}{", "negative": "-5"} {
		a := map[string]string{}
		if text != "" {
			for _, key := range []string{
				podconfig.AnnotationHash, podconfig.AnnotationRestartCount, podconfig.AnnotationPreStop, podconfig.AnnotationPorts,
			} {
				a[key] = text
			}
			a[podconfig.AnnotationDeletionGrace] = "soon"
		}
		assert.Zero(t, podconfig.HashOf(a), name)
		assert.Zero(t, podconfig.RestartCountOf(a), name)
		assert.Nil(t, podconfig.SecondsOf(a, podconfig.AnnotationDeletionGrace), name)
		assert.Nil(t, podconfig.PreStopOf(a), name)
		assert.Empty(t, podconfig.PortsOf(a), name)
	}
}

// The error of an incomplete input names the missing field.
func TestIncompleteInputsAreErrors(t *testing.T) {
	_, err := podconfig.Sandbox(podconfig.PodInput{}, 0)
	assert.ErrorContains(t, err, "Input.Pod")
	_, err = podconfig.Container(podconfig.PodInput{Pod: new(v1.Pod)}, podconfig.ContainerInput{})
	assert.ErrorContains(t, err, "ContainerInput.Container")
	_, err = podconfig.Container(podconfig.PodInput{Pod: new(v1.Pod)}, podconfig.ContainerInput{Container: new(v1.Container), RestartCount: -1})
	assert.ErrorContains(t, err, "RestartCount")
	c := &v1.Container{Name: "a", VolumeMounts: []v1.VolumeMount{{Name: "v"}}, VolumeDevices: []v1.VolumeDevice{{Name: "d"}}}
	_, err = podconfig.Container(podconfig.PodInput{Pod: new(v1.Pod)}, podconfig.ContainerInput{Container: c})
	assert.ErrorContains(t, err, `container "a" has 1 volumeMounts; 0 volumes were given`)
	_, err = podconfig.Container(podconfig.PodInput{Pod: new(v1.Pod)}, podconfig.ContainerInput{Container: c, Volumes: []podconfig.Volume{{HostPath: "/v"}}})
	assert.ErrorContains(t, err, `container "a" has 1 volumeDevices; 0 devices were given`)
	config, err := podconfig.Container(podconfig.PodInput{Pod: new(v1.Pod)}, podconfig.ContainerInput{
		Container: c, Volumes: []podconfig.Volume{{HostPath: "/v"}}, BlockDevices: []podconfig.BlockDevice{{}},
	})
	require.NoError(t, err)
	assert.Empty(t, config.Devices, "a missing device is omitted (vol-74)")
}
