package podconfig_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// A fieldRow is a line of testdata/fields.txt.
type fieldRow struct {
	state string // honoured, elsewhere …
	where string // the package, or who
	note  string
}

const root = "../../.." // of the module

// docs/pod-fields.md is true: it has every field that a pod's spec can have; a
// field that it calls honoured is proved by a case of testdata/pods (see
// TestEachCaseProvesItsFields), and one that another package honours is spoken of
// in that package's tests.
func TestTheTableOfPodFields(t *testing.T) {
	rows := readFields(t)
	proof := map[string][]string{}
	for _, gc := range goldenCases(t) {
		for _, key := range gc.proves {
			proof[key] = append(proof[key], gc.name)
		}
	}
	var doc bytes.Buffer
	doc.WriteString(tableHead)
	seen := map[string]bool{}
	for _, of := range fieldTypes(rows) {
		doc.WriteString("\n## " + title(of) + "\n\n| field | what becomes of it | proof | note |\n|---|---|---|---|\n")
		for i := range of.NumField() {
			f := of.Field(i)
			key := keyOf(of, f)
			if f.Anonymous || seen[key] {
				continue
			}
			seen[key] = true
			row, ok := rows[key]
			if !ok {
				t.Errorf("%s is not in testdata/fields.txt", key)
				continue
			}
			_, name, _ := strings.Cut(key, ".")
			fmt.Fprintf(&doc, "| `%s` | %s | %s | %s |\n", name, what(row), proofOf(t, key, f, row, proof[key]), row.note)
			delete(proof, key)
		}
	}
	for key := range rows {
		assert.True(t, seen[key], "testdata/fields.txt has %s, which no pod can have", key)
	}
	assert.Empty(t, slices.Sorted(maps.Keys(proof)), "cases prove what is no field, or not honoured")
	file := filepath.Join(root, "docs", "pod-fields.md")
	if *update {
		require.NoError(t, os.WriteFile(file, doc.Bytes(), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "go test -update writes it")
	assert.Equal(t, string(bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))), doc.String())
}

const tableHead = `# What becomes of the fields of a pod

Made by ` + "`go test ./runtime/cri/podconfig -update`" + ` from the types of k8s.io/api; the same test fails if a field is missing here or if what is said of it is not so.

- **honoured**: it changes what the CRI runtime is asked for. The proof is a pod in runtime/cri/podconfig/testdata/pods that has the field, beside the request that is made from it; without the field, that request is another one.
- **honoured by** another package, whose tests speak of it.
- **planned**: not honoured yet, or not shown to be.
- **left to** another part of a node or a cluster.
- **ignored** or **refused**, as the note says.

The rows of a type hold wherever the type is used; those of Container also for init and ephemeral containers.
`

func title(of reflect.Type) string {
	if of == reflect.TypeFor[v1.EphemeralContainer]() {
		return "EphemeralContainer, beside what all containers have"
	}
	return of.Name()
}

func what(row fieldRow) string {
	switch row.state {
	case "elsewhere":
		return "honoured by " + row.where
	case "planned":
		return "planned, " + row.where
	case "other":
		return "left to: " + row.where
	}
	return row.state
}

// proofOf checks what the row claims, and returns what shows it.
func proofOf(t *testing.T, key string, f reflect.StructField, row fieldRow, cases []string) string {
	t.Helper()
	switch row.state {
	case "honoured":
		if assert.NotEmpty(t, cases, "%s is honoured, but no case of testdata/pods proves it", key) {
			more := ""
			if len(cases) > 3 {
				cases, more = cases[:3], ", …"
			}
			return strings.Join(cases, ", ") + more
		}
	case "elsewhere":
		assert.True(t, spokenOf(t, row.where, f.Name), "no test of %s speaks of %s", row.where, f.Name)
		return "tests of " + row.where
	}
	assert.Empty(t, cases, "%s is %s, and proved", key, row.state)
	return ""
}

// spokenOf reports whether a test of the package, or of one below it, has the
// word.
func spokenOf(t *testing.T, pkg, word string) bool {
	t.Helper()
	found := false
	require.NoError(t, filepath.WalkDir(filepath.Join(root, filepath.FromSlash(pkg)), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") || found {
			return err
		}
		text, err := os.ReadFile(path)
		found = bytes.Contains(text, []byte(word))
		return err
	}))
	return found
}

// fieldTypes returns the types whose fields a spec has, in the order in which
// they are met. What is left to others is not gone into.
func fieldTypes(rows map[string]fieldRow) []reflect.Type {
	var types []reflect.Type
	for queue := []reflect.Type{reflect.TypeFor[v1.PodSpec]()}; len(queue) > 0; queue = queue[1:] {
		of := queue[0]
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || of.PkgPath() != reflect.TypeFor[v1.PodSpec]().PkgPath() || slices.Contains(types, of) ||
			of == reflect.TypeFor[v1.EphemeralContainerCommon]() {
			continue
		}
		if !strings.HasSuffix(of.Name(), "VolumeSource") || of == reflect.TypeFor[v1.VolumeSource]() {
			types = append(types, of)
		}
		for i := range of.NumField() {
			f := of.Field(i)
			if state := rows[keyOf(of, f)].state; f.Anonymous || state == "honoured" || state == "elsewhere" || state == "planned" {
				if of != reflect.TypeFor[v1.VolumeSource]() {
					queue = append(queue, f.Type)
				}
			}
		}
	}
	return types
}

// readFields reads the table of what becomes of each field.
func readFields(t *testing.T) map[string]fieldRow {
	t.Helper()
	text, err := os.ReadFile("testdata/fields.txt")
	require.NoError(t, err)
	rows := map[string]fieldRow{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := append(strings.Split(line, "\t"), "")
		require.Greater(t, len(cells), 2, line)
		var row fieldRow
		row.state, row.where, _ = strings.Cut(cells[1], " ")
		row.note = cells[2]
		require.Contains(t, []string{"honoured", "elsewhere", "planned", "other", "ignored", "refused"}, row.state, line)
		require.NotContains(t, rows, cells[0])
		rows[cells[0]] = row
	}
	return rows
}

// The rows of Container stand for ephemeral containers too: these have the same
// fields.
func TestEphemeralContainersHaveTheFieldsOfContainers(t *testing.T) {
	names := func(of reflect.Type) (names []string) {
		for i := range of.NumField() {
			names = append(names, of.Field(i).Name)
		}
		return names
	}
	assert.Equal(t, names(reflect.TypeFor[v1.Container]()), names(reflect.TypeFor[v1.EphemeralContainerCommon]()))
}
