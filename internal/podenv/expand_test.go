package podenv_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

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
