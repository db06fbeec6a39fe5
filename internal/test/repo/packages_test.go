package repo_test

import (
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// packageGroups are the sections of docs/packages.md, in order. A package is in the section
// with the longest prefix of its path.
var packageGroups = []struct {
	title    string
	prefixes []string
}{
	{"Pods", []string{"agent", "compose", "runtime", "podsource", "podworker", "pleg", "status", "prober", "allocation"}},
	{"Container runtimes", []string{"runtime/containers", "runtime/cri", "runtime/process"}},
	{"Volumes", []string{"volume"}},
	{"Resources of the node", []string{"cm", "eviction", "imagegc", "shutdown"}},
	{"Clusters: the module github.com/kubeparts/kubeparts/kube", []string{"kube"}},
	{"Virtual nodes: the module github.com/kubeparts/kubeparts/" + virtualkubelet, []string{virtualkubelet}},
	{"Tests and simulation", []string{
		"runtime/fake", "runtime/runtimetest", "runtime/containers/containerstest", "runtime/cri/fakecri", "runtime/cri/serve", "sim", "volume/volumetest", "volume/csi/csitest", "cm/device/devicetest",
		"cm/topology/topologytest", "kube/fakenode", "kube/hollow", "kube/apitest", "kube/controllers",
	}},
}

// virtualkubelet is the module that is not in the workspace of the repository.
const virtualkubelet = "kube/provider/virtualkubelet"

// A packageRow is a row of docs/packages.md.
type packageRow struct {
	dir       string
	imports   int // packages in its closure on Linux
	limit     int // of importLimits
	stability string
	synopsis  string
}

// tolerance is how much the number of packages in the table may differ from that of the
// toolchain that runs the test.
const tolerance = 10

// docs/packages.md has each package that others can import, with what importing it costs
// and the limit of importLimits.
func TestThePackagesAreDocumented(t *testing.T) {
	needRepository(t)
	const file = "docs/packages.md"
	const remedy = "go test ./internal/test/repo -run TestThePackages -update writes it"
	is, err := fs.ReadFile(files, file)
	require.NoError(t, err)
	head, tables, _ := strings.Cut(string(is), "\n## ")
	documented := map[string]int{}
	for line := range strings.Lines(tables) {
		if columns := strings.Split(line, "|"); len(columns) > 3 {
			name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(columns[1]), "["), "]")
			documented[name], _ = strconv.Atoi(strings.TrimSpace(columns[2]))
		}
	}
	rows := packageRows(t)
	listed := listPackages(t)
	for _, r := range rows {
		n, has := documented[r.dir]
		if !listed.has(r.dir) && has || n > r.imports-tolerance && n < r.imports+tolerance && !*update {
			r.imports = n
		}
	}
	text := head + packageTables(rows)
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(text), 0o644))
		return
	}
	if string(is) != text {
		t.Errorf("%s is stale: %s", file, remedy)
	}
}

// packageRows returns a row for each public package.
func packageRows(t *testing.T) (rows []*packageRow) {
	t.Helper()
	listed := listPackages(t)
	for _, dir := range slices.Sorted(publicPackages(t)) {
		fset := token.NewFileSet()
		source, err := fs.ReadFile(files, dir+"/doc.go")
		if err != nil {
			continue // a program, or TestEachPackageHasDocumentationAndAnExample fails
		}
		file, err := parser.ParseFile(fset, dir+"/doc.go", source, parser.ParseComments|parser.PackageClauseOnly)
		require.NoError(t, err)
		r := &packageRow{dir: dir, imports: len(listed.packages[dir].closure), limit: importLimits[dir].max}
		if m := stability.FindSubmatch(source); m != nil {
			r.stability = string(m[1])
		}
		synopsis := new(doc.Package).Synopsis(file.Doc.Text())
		r.synopsis = strings.NewReplacer("[", "", "]", "").Replace(strings.TrimPrefix(synopsis, "Package "+file.Name.Name+" "))
		rows = append(rows, r)
	}
	require.Greater(t, len(rows), 60)
	return rows
}

// packageTables returns the generated part of docs/packages.md.
func packageTables(rows []*packageRow) string {
	group := func(dir string) (best int) {
		longest := -1
		for i, g := range packageGroups {
			for _, prefix := range g.prefixes {
				if (dir == prefix || strings.HasPrefix(dir, prefix+"/")) && len(prefix) > longest {
					best, longest = i, len(prefix)
				}
			}
		}
		return best
	}
	groups := map[int][]*packageRow{}
	for _, r := range rows {
		groups[group(r.dir)] = append(groups[group(r.dir)], r)
	}
	var b strings.Builder
	for _, i := range slices.Sorted(maps.Keys(groups)) {
		fmt.Fprintf(&b, "\n## %s\n\n| package | imports | limit | stability | |\n|---|---|---|---|---|\n", packageGroups[i].title)
		for _, r := range groups[i] {
			fmt.Fprintf(&b, "| [%s](%s) | %d | %d | %s | %s |\n", r.dir, path.Join("..", r.dir), r.imports, r.limit, strings.ToLower(r.stability), r.synopsis)
		}
	}
	return b.String()
}

// The import graph in doc.go has every package in internal, and no other.
func TestTheImportGraphHasTheInternalPackages(t *testing.T) {
	needRepository(t)
	source, err := fs.ReadFile(files, "doc.go")
	require.NoError(t, err)
	inGraph := map[string]bool{}
	for line := range strings.Lines(string(source)) {
		if name, ok := strings.CutPrefix(line, "//\tinternal/"); ok {
			inGraph[strings.Fields(name)[0]] = true
		}
	}
	dirs, err := fs.ReadDir(files, "internal")
	require.NoError(t, err)
	for _, d := range dirs {
		sources, err := fs.Glob(files, "internal/"+d.Name()+"/*.go")
		require.NoError(t, err)
		if len(sources) > 0 {
			assert.True(t, inGraph[d.Name()], "doc.go does not have internal/%s", d.Name())
			delete(inGraph, d.Name())
		}
	}
	delete(inGraph, "test/repo")
	assert.Empty(t, inGraph, "doc.go has packages in internal that do not exist")
}
