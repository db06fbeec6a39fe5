package podfields

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var update = flag.Bool("update", false, "rewrite docs/pod-fields.md")

const root = "../.." // of the module

// The states of a field.
const (
	honored   = "honored"
	refused   = "refused"
	warned    = "warned"
	elsewhere = "elsewhere"
)

// A row is a line of fields.txt.
type row struct {
	state string
	tests []string // PACKAGE.Test
	note  string
}

// A new version of k8s.io/api with another field fails this test until the field has a
// row.
func TestEachFieldOfAPodHasARow(t *testing.T) {
	rows := readRows(t)
	fields := map[string]bool{}
	for _, of := range types(rows) {
		for _, f := range fieldsOf(of) {
			key := owner(of) + "." + jsonName(f)
			fields[key] = true
			_, ok := rows[key]
			assert.True(t, ok, "%s has no row: is the field honored, refused, warned about, or not for the node?", key)
		}
	}
	for key := range rows {
		assert.True(t, fields[key], "%s is no field of a pod", key)
	}
}

func TestEachRowIsProved(t *testing.T) {
	rows, pods := readRows(t), proofsByPods(t)
	names := goNames(rows)
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		r := rows[key]
		switch r.state {
		case honored:
			assert.NotEmpty(t, slices.Concat(r.tests, pods[key]), "%s has no proof", key)
		case refused, warned:
			assert.NotEmpty(t, r.tests, "%s has no proof", key)
		case elsewhere:
			assert.NotEmpty(t, r.note, "%s: what acts on it?", key)
			assert.Empty(t, r.tests, key)
		}
		_, ok := ignored[key]
		assert.Equal(t, r.state == warned, ok, "%s: the rows that are warned about are those of ignored.go", key)
		if r.state != honored {
			assert.Empty(t, pods[key], "%s is %s, and pods prove it", key, r.state)
		}
		mentioned := len(r.tests) == 0 || r.state == warned || r.state == refused
		for _, test := range r.tests {
			source := testsOf(t, test)
			name := test[strings.LastIndex(test, ".")+1:]
			assert.True(t, strings.Contains(source, "\nfunc "+name+"("), "%s: there is no test %s", key, test)
			mentioned = mentioned || regexp.MustCompile(`\b(`+names[key]+`|`+key[strings.Index(key, ".")+1:]+`)\b`).MatchString(source)
		}
		assert.True(t, mentioned, "%s: the tests of %v do not contain the field", key, r.tests)
	}
	for key := range pods {
		_, ok := rows[key]
		assert.True(t, ok, "%s has no row, and pods prove it", key)
	}
}

// testsOf returns the test files of a test's package.
func testsOf(t *testing.T, test string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(test[:strings.LastIndex(test, ".")]), "*_test.go"))
	require.NoError(t, err)
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all.Write(text)
	}
	return strings.ReplaceAll(all.String(), "\r\n", "\n")
}

var provesLine = regexp.MustCompile(`(?m)^# proves: (.*?)\r?$`)

// proofsByPods returns the pods that prove each field: the CRI request that is made of
// such a pod differs without the field, which a test of runtime/cri/podconfig checks.
func proofsByPods(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "runtime", "cri", "podconfig", "testdata", "pods", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	proofs := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range provesLine.FindAllStringSubmatch(string(text), -1) {
			for key := range strings.SplitSeq(m[1], ", ") {
				proofs[key] = append(proofs[key], strings.TrimSuffix(filepath.Base(file), ".yaml"))
			}
		}
	}
	return proofs
}

// types returns the types whose fields have rows, in the order in which they are
// reached from a pod.
func types(rows map[string]row) []reflect.Type {
	var all []reflect.Type
	for queue := []reflect.Type{reflect.TypeFor[metav1.ObjectMeta](), reflect.TypeFor[v1.PodSpec]()}; len(queue) > 0; queue = queue[1:] {
		of := queue[0]
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of == reflect.TypeFor[v1.EphemeralContainerCommon]() {
			of = reflect.TypeFor[v1.Container]()
		}
		if of.Kind() != reflect.Struct || slices.Contains(all, of) || !ours(of) && of != reflect.TypeFor[metav1.ObjectMeta]() {
			continue
		}
		all = append(all, of)
		for i := range of.NumField() {
			f := of.Field(i)
			if state := rows[owner(of)+"."+jsonName(f)].state; jsonName(f) == "" || state == honored {
				queue = append(queue, f.Type)
			}
		}
	}
	return all
}

func fieldsOf(of reflect.Type) (fields []reflect.StructField) {
	for i := range of.NumField() {
		if f := of.Field(i); jsonName(f) != "" {
			fields = append(fields, f)
		}
	}
	return fields
}

func goNames(rows map[string]row) map[string]string {
	names := map[string]string{}
	for _, of := range types(rows) {
		for _, f := range fieldsOf(of) {
			names[owner(of)+"."+jsonName(f)] = f.Name
		}
	}
	return names
}

func readRows(t *testing.T) map[string]row {
	t.Helper()
	text, err := os.ReadFile("fields.txt")
	require.NoError(t, err)
	rows := map[string]row{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := append(strings.Split(line, "\t"), "", "")
		require.Contains(t, []string{honored, refused, warned, elsewhere}, cells[1], line)
		require.NotContains(t, rows, cells[0])
		rows[cells[0]] = row{cells[1], strings.Fields(cells[2]), cells[3]}
	}
	return rows
}

// The rows of Container stand for ephemeral containers, which have the same fields.
func TestEphemeralContainersHaveTheFieldsOfContainers(t *testing.T) {
	names := func(of reflect.Type) (names []string) {
		for _, f := range fieldsOf(of) {
			names = append(names, f.Name)
		}
		return names
	}
	assert.Equal(t, names(reflect.TypeFor[v1.Container]()), names(reflect.TypeFor[v1.EphemeralContainerCommon]()))
}

// docs/pod-fields.md is made from the table.
func TestTheDocumentOfPodFieldsIsTheTable(t *testing.T) {
	rows, pods := readRows(t), proofsByPods(t)
	var doc bytes.Buffer
	doc.WriteString(head)
	for _, of := range types(rows) {
		title := of.Name()
		if of == reflect.TypeFor[v1.EphemeralContainer]() {
			title += ", in addition to the fields of Container"
		}
		fields := fieldsOf(of)
		if len(fields) == 0 {
			continue
		}
		fmt.Fprintf(&doc, "\n## %s\n\n| field | type | state | proof | note |\n|---|---|---|---|---|\n", title)
		for _, f := range fields {
			key := owner(of) + "." + jsonName(f)
			r := rows[key]
			var proofs []string
			for _, test := range r.tests {
				proofs = append(proofs, "`"+test+"`")
			}
			if cases := pods[key]; len(cases) > 3 {
				proofs = append(proofs, cases[:3]...)
				proofs = append(proofs, "…")
			} else {
				proofs = append(proofs, cases...)
			}
			note := r.note
			if reason, ok := ignored[key]; ok && note == "" {
				note = reason
			}
			fmt.Fprintf(&doc, "| `%s` | %s | %s | %s | %s |\n", jsonName(f), typeName(f.Type), r.state, strings.Join(proofs, ", "), note)
		}
	}
	file := filepath.Join(root, "docs", "pod-fields.md")
	if *update {
		require.NoError(t, os.WriteFile(file, doc.Bytes(), 0o644))
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, doc.String(), strings.ReplaceAll(string(got), "\r\n", "\n"), "go test ./internal/podfields -update writes it")
}

// typeName returns the type as the API's documentation writes it; that of a struct with
// a section of its own is its title.
func typeName(of reflect.Type) string {
	switch of.Kind() {
	case reflect.Pointer:
		return typeName(of.Elem())
	case reflect.Slice:
		return "[]" + typeName(of.Elem())
	case reflect.Map:
		return "map"
	}
	return of.Name()
}

const head = `# Support for the fields of a pod

Made by ` + "`go test ./internal/podfields -update`" + ` from internal/podfields/fields.txt and the types of k8s.io/api. The same test fails if
a field has no row, if a test that is named does not exist, or if this file is out of date.

- **honored**: the node acts on it. The proof is a test, or a pod in runtime/cri/podconfig/testdata/pods for which a test
  shows that the CRI request differs without the field.
- **refused**: a pod that has it is rejected, with the reason.
- **warned**: it has no effect, and the reference agent reports it in an event (` + "`admission.IgnoredFields`" + `).
- **elsewhere**: it is handled by another component, and has no effect in a kubelet either. Fields below it are not listed.

A type that several fields have is listed once. The rows of Container apply to init and ephemeral containers as well.
`
