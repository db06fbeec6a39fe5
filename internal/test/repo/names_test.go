package repo_test

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// qualified is an exported name of a package, with at most one field or method.
var qualified = regexp.MustCompile(`\b([a-z][a-z0-9]*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)

// otherNames are names of packages outside of this repository, whose last elements are
// those of packages in it.
var otherNames = []string{"container.Runtime", "node.PodLifecycleHandler", "node.PodNotifier",
	"node.NodeProvider", "runtime.MemProfileRate", "runtime.Goexit", "runtime.HandleError", "runtime.IsStrictDecodingError"}

// Names such as pleg.Config.Parallel in documents and comments exist in the API.
func TestTheDocumentsNameWhatExists(t *testing.T) {
	needRepository(t)
	names := apiNames(t)
	var documents []string
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		found, err := fs.Glob(files, pattern)
		require.NoError(t, err)
		documents = append(documents, found...)
	}
	documents = append(documents, filesWhere(t, isCode)...)
	checked := 0
	for _, document := range documents {
		text, err := fs.ReadFile(files, document)
		require.NoError(t, err)
		inCode := strings.HasSuffix(document, ".go")
		for i, line := range strings.Split(string(text), "\n") {
			if comment, ok := strings.CutPrefix(strings.TrimSpace(line), "// "); inCode && (!ok || strings.HasPrefix(comment, " ")) {
				continue // code, also of a usage, whose variables may be named like packages
			}
			if cells := strings.Split(line, " | "); document == "CHANGELOG.md" && strings.HasPrefix(line, "| ") && len(cells) == 2 {
				line = cells[1] // the first cell has names that were changed
			}
			for _, m := range qualified.FindAllStringSubmatch(line, -1) {
				pkg, name, member := m[1], m[2], m[3]
				isTest := slices.ContainsFunc([]string{"Test", "Benchmark", "Example", "Fuzz"}, func(p string) bool { return strings.HasPrefix(name, p) })
				if names[pkg] == nil || isTest && !names[pkg][name] || slices.Contains(otherNames, pkg+"."+name) {
					continue
				}
				checked++
				at := fmt.Sprintf("%s:%d", document, i+1)
				if assert.True(t, names[pkg][name], "%s: %s.%s does not exist", at, pkg, name) && member != "" {
					assert.True(t, names[pkg][name+"."+member], "%s: %s.%s.%s does not exist", at, pkg, name, member)
				}
			}
		}
	}
	assert.Greater(t, checked, 100)
}

// apiNames returns the exported names in the golden files of the API, by the last element
// of the package's path: Config, and Config.Parallel for fields and methods.
func apiNames(t *testing.T) map[string]map[string]bool {
	t.Helper()
	names := map[string]map[string]bool{}
	word := func(s string) string {
		if i := strings.IndexFunc(s, func(r rune) bool { return strings.ContainsRune(" ([,", r) }); i >= 0 {
			return s[:i]
		}
		return s
	}
	err := fs.WalkDir(files, apiText, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, file)
		pkg := strings.TrimSuffix(path.Base(file), ".txt")
		if names[pkg] == nil {
			names[pkg] = map[string]bool{}
		}
		for line := range strings.Lines(string(text)) {
			kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch kind {
			case "method": // (*Manager) Run(ctx …
				recv, method, _ := strings.Cut(strings.TrimPrefix(rest, "("), ") ")
				names[pkg][word(strings.TrimLeft(recv, "*"))+"."+word(method)] = true
			default: // Config struct, Parallel int
				name := word(rest)
				names[pkg][name] = true
				if _, member, ok := strings.Cut(rest, ", "); ok && kind == "type" {
					names[pkg][name+"."+word(strings.TrimPrefix(member, "embeds "))] = true
				}
			}
		}
		return err
	})
	require.NoError(t, err)
	require.Greater(t, len(names), 50)
	for name := range names["options"] { // package kubelet has aliases of them
		names["kubelet"][name] = true
	}
	return names
}
