package controllers

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A consumer must copy the replacements of go.mod, which the documentation lists.
func TestTheDocumentedReplacementsAreThoseOfTheModule(t *testing.T) {
	line := regexp.MustCompile(`(?m)^(?://)?\t+(k8s\.io/\S+ => k8s\.io/\S+ v\S+)$`)
	list := func(file string) (lines []string) {
		for _, m := range line.FindAllStringSubmatch(readFile(t, file), -1) {
			lines = append(lines, m[1])
		}
		slices.Sort(lines)
		return lines
	}
	require.NotEmpty(t, list("go.mod"))
	require.Equal(t, list("go.mod"), list("doc.go"))
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(data)
}
