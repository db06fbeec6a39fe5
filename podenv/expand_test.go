package podenv_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podenv"
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

func TestCommandsOfProbesKnowLiteralsOnly(t *testing.T) { // pe-13, prober-34
	env := []v1.EnvVar{
		{Name: "A", Value: "0"}, {Name: "A", Value: "1"}, {Name: "B", Value: "$(A)"}, {Name: "E"},
		{Name: "C", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		{Name: "D", Value: "1"}, {Name: "D", ValueFrom: &v1.EnvVarSource{}},
	}
	assert.Equal(t, []string{"1", "$(A)", "$(C)", "$(D)", "", "$(NONE)", "$(A)"},
		podenv.ExpandLiterals([]string{"$(A)", "$(B)", "$(C)", "$(D)", "$(E)", "$(NONE)", "$$(A)"}, env))
	assert.Nil(t, podenv.ExpandLiterals(nil, env))
}
