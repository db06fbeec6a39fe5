package repo_test

import (
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dependency is a module in the first column of a table.
var dependency = regexp.MustCompile("`([a-z0-9.-]+\\.[a-z]+/[^`]+)`")

// docs/architecture.md has the reason for each module that a go.mod requires directly.
func TestTheDirectDependenciesAreExplained(t *testing.T) {
	needRepository(t)
	text := read(t, "docs/architecture.md")
	_, section, ok := strings.Cut(string(text), "\n## Direct dependencies\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	explained := map[string]bool{}
	for line := range strings.Lines(section) {
		if columns := strings.Split(line, "|"); len(columns) == 4 {
			for _, m := range dependency.FindAllStringSubmatch(columns[1], -1) {
				explained[m[1]] = false
			}
		}
	}
	mods := filesWhere(t, func(name string) bool { return path.Base(name) == "go.mod" && !inTestdata(name) })
	assert.Greater(t, len(mods), 3)
	for _, name := range mods {
		required := false
		for line := range strings.Lines(string(read(t, name))) {
			line = strings.TrimSpace(line)
			if one, ok := strings.CutPrefix(line, "require "); ok {
				required, line = strings.HasSuffix(one, "("), one
			} else if line == ")" {
				required = false
			} else if !required {
				continue
			}
			module, _, ok := strings.Cut(line, " ")
			if !ok || strings.HasSuffix(line, "// indirect") || strings.HasPrefix(module, "github.com/kubeparts/") {
				continue
			}
			if _, ok := explained[module]; assert.True(t, ok, "%s requires %s: docs/architecture.md does not have the reason", name, module) {
				explained[module] = true
			}
		}
	}
	for module, required := range explained {
		assert.True(t, required, "docs/architecture.md explains %s, which no go.mod requires directly", module)
	}
}
