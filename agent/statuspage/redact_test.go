package statuspage

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/agent/statuspage/internal/page"
	"github.com/kubeparts/kubeparts/podworker"
)

// secretive is a pod with a secret wherever a literal value can be one.
func secretive() *v1.Pod {
	headers := []v1.HTTPHeader{{Name: "Authorization", Value: "secret-header"}}
	get := &v1.HTTPGetAction{Path: "/health", HTTPHeaders: headers}
	container := func(name string) v1.Container {
		return v1.Container{
			Name: name, Image: "image-of-" + name,
			Env: []v1.EnvVar{
				{Name: "PASSWORD", Value: "secret-in-" + name}, {Name: "EMPTY"}, {Name: "NAME", Value: "container-" + name},
				{Name: "FROM", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{Key: "key-of-secret"}}},
			},
			LivenessProbe: &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: get.DeepCopy()}},
			Lifecycle:     &v1.Lifecycle{PreStop: &v1.LifecycleHandler{HTTPGet: get.DeepCopy()}},
		}
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "db", Namespace: "prod", UID: "u",
			Annotations: map[string]string{
				v1.LastAppliedConfigAnnotation: `{"env":[{"value":"secret-applied"}]}`, "vendor/token": "secret-annotation", "kubernetes.io/config.source": "api",
			},
			ManagedFields: []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(`{"v:secret-managed":{}}`)}},
		},
		Spec: v1.PodSpec{
			InitContainers:      []v1.Container{container("init")},
			Containers:          []v1.Container{container("main")},
			EphemeralContainers: []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon(container("debug"))}},
			Volumes: []v1.Volume{
				{Name: "v", VolumeSource: v1.VolumeSource{CSI: &v1.CSIVolumeSource{Driver: "driver", VolumeAttributes: map[string]string{"key": "secret-attribute"}}}},
				{Name: "f", VolumeSource: v1.VolumeSource{FlexVolume: &v1.FlexVolumeSource{Options: map[string]string{"key": "secret-option"}}}},
			},
		},
		Status: v1.PodStatus{
			Conditions: []v1.PodCondition{{Message: "failed with secret-in-main"}},
			ContainerStatuses: []v1.ContainerStatus{{
				Name: "main", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Message: `env "secret-in-main"`}},
				AllocatedResources: v1.ResourceList{v1.ResourceCPU: {}},
			}},
		},
	}
}

func TestAPodIsShownWithoutItsSecrets(t *testing.T) {
	pod := secretive()
	was, err := json.Marshal(pod)
	require.NoError(t, err)
	text, err := json.Marshal(redactPod(pod))
	require.NoError(t, err)
	after, err := json.Marshal(pod)
	require.NoError(t, err)
	assert.Equal(t, string(was), string(after), "the pod itself is not changed")
	shown := strings.ReplaceAll(string(text), "key-of-secret", "")
	assert.NotContains(t, shown, "secret-")
	assert.NotContains(t, shown, "container-main", "all values are hidden")
	for _, name := range []string{"PASSWORD", "EMPTY", "FROM", "Authorization", "image-of-main", "vendor/token", v1.LastAppliedConfigAnnotation, `"kubernetes.io/config.source":"api"`, "failed with \\u003credacted\\u003e"} {
		assert.Contains(t, string(text), name)
	}
	assert.Contains(t, string(text), "key-of-secret", "a reference is a name")
}

func TestValuesAreHiddenInTexts(t *testing.T) {
	pod := secretive()
	pod.Spec.Containers[0].Env = []v1.EnvVar{
		{Name: "A", Value: "secret-1"}, {Name: "B", Value: "secret-1-and-more"}, {Name: "SHORT", Value: "true"}, {Name: "IMAGE", Value: "image-of-main"},
		{Name: "LINES", Value: "-----BEGIN-----\nabcdefghij\n-----END-----\n"}, {Name: "QUOTE", Value: "say \"hello\""},
	}
	hide := hiderOf(pod)
	for text, want := range map[string]string{
		"x secret-1 y":                       "x <redacted> y",
		"secret-1-and-more":                  "<redacted>",
		"it is true":                         "it is true",
		"pull image-of-main: 404":            "pull image-of-main: 404",
		"cut after abcdefghij":               "cut after <redacted>",
		`bad value "say \"hello\""`:          `bad value "<redacted>"`,
		`exec "sh -c \"say \\\"hello\\\"\""`: `exec "sh -c \"<redacted>\""`,
		"":                                   "",
	} {
		assert.Equal(t, want, hide(text))
	}

	e := podworker.Snapshot{
		At: time.Unix(1, 0), Name: "db", Err: "exec secret-1", Step: "with secret-1",
		Termination: &podworker.TerminationRequest{Message: "because secret-1", GracePeriodSeconds: new(int64(3))},
	}
	hidden := mapText(e, hide)
	assert.NotContains(t, describe(hidden), "secret-1")
	assert.Equal(t, e.At, hidden.At)
	assert.Equal(t, e.Termination.GracePeriodSeconds, hidden.Termination.GracePeriodSeconds)
	assert.Equal(t, "because secret-1", e.Termination.Message, "the original is not changed")

	shown := mapText(page.Pod{Name: "db", Plan: page.Plan{Results: []page.Result{{Err: "secret-1"}}}, Volumes: []page.Volume{{Err: "secret-1"}}}, hide)
	assert.Equal(t, redacted, shown.Plan.Results[0].Err)
	assert.Equal(t, redacted, shown.Volumes[0].Err)
	assert.Equal(t, "db", shown.Name)
}
