package podenv_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/podenv"
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
		got, err := podenv.Expand(in, lookup)
		require.NoError(t, err)
		assert.Equal(t, want, got, "%q", in)
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("$(A) $$(B) $")
	f.Fuzz(func(t *testing.T, s string) {
		same, err := podenv.Expand(s, func(name string) (string, bool) { return "$(" + name + ")", true })
		require.NoError(t, err)
		none, err := podenv.Expand(s, func(string) (string, bool) { return "", false })
		require.NoError(t, err)
		assert.Equal(t, none, same, "a variable whose value is its own reference changes nothing")
	})
}

func TestCommandsOfProbesHaveLiteralsOnly(t *testing.T) { // pe-13, prober-34
	env := []v1.EnvVar{
		{Name: "A", Value: "0"}, {Name: "A", Value: "1"}, {Name: "B", Value: "$(A)"}, {Name: "E"},
		{Name: "C", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		{Name: "D", Value: "1"}, {Name: "D", ValueFrom: &v1.EnvVarSource{}},
	}
	args, err := podenv.ExpandLiterals([]string{"$(A)", "$(B)", "$(C)", "$(D)", "$(E)", "$(NONE)", "$$(A)"}, env)
	require.NoError(t, err)
	assert.Equal(t, []string{"1", "$(A)", "$(C)", "$(D)", "", "$(NONE)", "$(A)"}, args)
	args, err = podenv.ExpandLiterals(nil, env)
	require.NoError(t, err)
	assert.Nil(t, args)
}

// Nested references grow exponentially: a small spec must not exhaust the agent's memory.
func TestExpansionsAreBounded(t *testing.T) {
	var doubling, large []v1.EnvVar
	for i := range 40 {
		doubling = append(doubling, v1.EnvVar{Name: fmt.Sprint("A", i), Value: fmt.Sprintf("x$(A%d)$(A%d)", i-1, i-1)})
		large = append(large, v1.EnvVar{Name: fmt.Sprint("A", i), Value: strings.Repeat("x", 1<<20)})
	}
	pod := &v1.Pod{Spec: v1.PodSpec{EnableServiceLinks: new(false)}}
	for name, env := range map[string][]v1.EnvVar{"each twice the one before": doubling, "large together": large} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := podenv.New(podenv.Inputs{Pod: pod}, &v1.Container{Env: env})
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, podenv.ErrTooLarge, name)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), name)
	}
	one, err := podenv.New(podenv.Inputs{Pod: pod}, &v1.Container{Env: large[:1]})
	require.NoError(t, err)
	args, err := one.ExpandAll([]string{strings.Repeat("$(A0)", 8)})
	require.NoError(t, err)
	assert.Len(t, args[0], podenv.MaxSize)
	for name, args := range map[string][]string{"one": {strings.Repeat("$(A0)", 1<<16)}, "all": slices.Repeat([]string{"$(A0)"}, 9)} {
		_, err = one.ExpandAll(args)
		assert.ErrorIs(t, err, podenv.ErrTooLarge, name)
		_, err = podenv.ExpandLiterals(args, large)
		assert.ErrorIs(t, err, podenv.ErrTooLarge, name)
	}
	_, err = podenv.Expand(strings.Repeat("$(A0)", 9), one.Get)
	assert.ErrorIs(t, err, podenv.ErrTooLarge)
	same := slices.Repeat(large[:1], 100) // one variable, again and again
	_, err = podenv.New(podenv.Inputs{Pod: pod}, &v1.Container{Env: same})
	assert.NoError(t, err)
}
