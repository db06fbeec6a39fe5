package podenv_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/internal/podenv"
)

func TestExpand(t *testing.T) {
	vars := map[string]string{"A": "1", "B": "$(A)", "": "empty"}
	lookup := func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
	for in, want := range map[string]string{
		"":                 "",
		"plain":            "plain",
		"$(A)":             "1",
		"x$(A)y$(A)z":      "x1y1z",
		"$(B)":             "$(A)", // once only
		"$(NO)":            "$(NO)",
		"$$(A)":            "$(A)",
		"$$$(A)":           "$1",
		"$$":               "$",
		"$":                "$",
		"$A":               "$A",
		"$(A":              "$(A",
		"a $ b":            "a $ b",
		"$(A)$":            "1$",
		"$()":              "empty",
		"${A} $(A)":        "${A} 1",
		"cost: 5$ $(A)$$x": "cost: 5$ 1$x",
	} {
		assert.Equal(t, want, podenv.Expand(in, lookup), "%q", in)
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("$(A) $$(B) $")
	f.Fuzz(func(t *testing.T, s string) {
		same := podenv.Expand(s, func(name string) (string, bool) { return "$(" + name + ")", true })
		none := podenv.Expand(s, func(string) (string, bool) { return "", false })
		assert.Equal(t, none, same, "a variable whose value is its own reference changes nothing")
	})
}

func pod() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "prod", UID: "u1",
			Labels: map[string]string{"app": "shop"}, Annotations: map[string]string{"a/b": "c"}},
		Spec: v1.PodSpec{NodeName: "n1", ServiceAccountName: "sa", Containers: []v1.Container{
			{Name: "other", Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1500m")},
				Limits:   v1.ResourceList{v1.ResourceMemory: resource.MustParse("100Mi")},
			}},
		}},
	}
}

func TestMake(t *testing.T) {
	ref := func(path string) *v1.EnvVarSource {
		return &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: path}}
	}
	res := func(container, name, divisor string) *v1.EnvVarSource {
		r := &v1.ResourceFieldSelector{ContainerName: container, Resource: name}
		if divisor != "" {
			r.Divisor = resource.MustParse(divisor)
		}
		return &v1.EnvVarSource{ResourceFieldRef: r}
	}
	c := &v1.Container{Env: []v1.EnvVar{
		{Name: "A", Value: "1"},
		{Name: "B", Value: "$(A)-$(LATER)-$$(A)"},
		{Name: "LATER", Value: "x"},
		{Name: "A", Value: "2"},
		{Name: "NAME", ValueFrom: ref("metadata.name")},
		{Name: "NS", ValueFrom: ref("metadata.namespace")},
		{Name: "UID", ValueFrom: ref("metadata.uid")},
		{Name: "LABEL", ValueFrom: ref("metadata.labels['app']")},
		{Name: "ANNOTATION", ValueFrom: ref("metadata.annotations['a/b']")},
		{Name: "NODE", ValueFrom: ref("spec.nodeName")},
		{Name: "SA", ValueFrom: ref("spec.serviceAccountName")},
		{Name: "HOST", ValueFrom: ref("status.hostIP")},
		{Name: "IP", ValueFrom: ref("status.podIP")},
		{Name: "IPS", ValueFrom: ref("status.podIPs")},
		{Name: "CPU", ValueFrom: res("other", "requests.cpu", "")},
		{Name: "MILLI", ValueFrom: res("other", "requests.cpu", "1m")},
		{Name: "MEM", ValueFrom: res("other", "limits.memory", "1Mi")},
		{Name: "NONE", ValueFrom: res("", "limits.memory", "")},
		{Name: "EMPTY"},
	}}
	env, err := podenv.Make(podenv.Facts{Pod: pod(), PodIPs: []string{"10.0.0.1", "fd00::1"}, HostIPs: []string{"192.0.2.1"}}, c)
	require.NoError(t, err)
	assert.Equal(t, []podenv.Var{
		{"A", "2"}, {"B", "1-$(LATER)-$(A)"}, {"LATER", "x"}, {"NAME", "web"}, {"NS", "prod"}, {"UID", "u1"},
		{"LABEL", "shop"}, {"ANNOTATION", "c"}, {"NODE", "n1"}, {"SA", "sa"}, {"HOST", "192.0.2.1"},
		{"IP", "10.0.0.1"}, {"IPS", "10.0.0.1,fd00::1"}, {"CPU", "2"}, {"MILLI", "1500"}, {"MEM", "100"},
		{"NONE", "0"}, {"EMPTY", ""},
	}, env.Vars())
	assert.Equal(t, []string{"serve", "--name=web", "$(NO)"}, env.ExpandAll([]string{"serve", "--name=$(NAME)", "$(NO)"}), "pe-13")
}

func TestMakeNamesWhatCannotBeHad(t *testing.T) {
	optional := new(true)
	for name, tc := range map[string]struct {
		c    v1.Container
		want string
	}{
		"configMap key (pe-6)": {v1.Container{Env: []v1.EnvVar{{Name: "X", ValueFrom: &v1.EnvVarSource{
			ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "cm"}, Key: "k", Optional: optional}}}}},
			"env X: couldn't get configMap prod/cm, no kubeClient defined"},
		"secret key": {v1.Container{Env: []v1.EnvVar{{Name: "X", ValueFrom: &v1.EnvVarSource{
			SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "s"}, Key: "k"}}}}},
			"env X: couldn't get secret prod/s, no kubeClient defined"},
		"envFrom": {v1.Container{EnvFrom: []v1.EnvFromSource{{SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "s"}}}}},
			"couldn't get secret prod/s, no kubeClient defined"},
		"unknown field": {v1.Container{Env: []v1.EnvVar{{Name: "X", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "spec.nope"}}}}},
			"env X: fieldRef: unsupported fieldPath: spec.nope"},
		"unknown container": {v1.Container{Env: []v1.EnvVar{{Name: "X", ValueFrom: &v1.EnvVarSource{ResourceFieldRef: &v1.ResourceFieldSelector{ContainerName: "no", Resource: "limits.cpu"}}}}},
			"env X: resourceFieldRef: container no not found"},
		"unknown resource": {v1.Container{Env: []v1.EnvVar{{Name: "X", ValueFrom: &v1.EnvVarSource{ResourceFieldRef: &v1.ResourceFieldSelector{Resource: "cpu"}}}}},
			"env X: resourceFieldRef: unsupported resource: cpu"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := podenv.Make(podenv.Facts{Pod: pod()}, &tc.c)
			assert.EqualError(t, err, tc.want)
		})
	}
}
