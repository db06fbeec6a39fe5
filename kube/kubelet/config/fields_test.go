package config

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
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite docs/configuration.md")

// The type is walked, so that a field that a new release of Kubernetes adds is missed.
func TestEachFieldOfAKubeletConfigurationIsDescribed(t *testing.T) {
	all := map[string]bool{}
	for f := range fields {
		assert.NotContains(t, all, f.name)
		all[f.name] = true
	}
	var walk func(of reflect.Type, prefix string)
	walk = func(of reflect.Type, prefix string) {
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		for f := range of.Fields() {
			name := prefix + jsonName(f)
			if all[name] || f.Anonymous {
				delete(all, name)
				continue
			}
			below := f.Type
			if below.Kind() == reflect.Pointer {
				below = below.Elem()
			}
			if below.Kind() != reflect.Struct || below.PkgPath() == "k8s.io/apimachinery/pkg/apis/meta/v1" {
				assert.Fail(t, "a field is not described", "%s (%s.%s)", name, of.Name(), f.Name)
				continue
			}
			walk(below, name+".")
		}
	}
	walk(reflect.TypeFor[kubeletconfig.KubeletConfiguration](), "")
	assert.Empty(t, all, "the table has entries that are no fields")
}

// Each honored field is read by package kubelet or its command; defaults and accepted
// values are values of the field.
func TestTheDescriptionsAreTrue(t *testing.T) {
	source := sourceOf(t, filepath.Join("..", "*.go"), filepath.Join("..", "..", "..", "examples", "kubelet", "*.go"))
	for f := range fields {
		var cfg kubeletconfig.KubeletConfiguration
		value, ok := f.value(&cfg, true)
		require.True(t, ok, f.name)
		assert.NotEmpty(t, f.doc, f.name)
		for _, text := range []string{f.def, f.accepted} {
			if text != "" {
				require.NoError(t, yaml.UnmarshalStrict([]byte(text), reflect.New(value.Type()).Interface()), f.name)
			}
		}
		if f.effect == honored {
			assert.Regexp(t, `\.`+goName(f.name)+`\b`, source, "%s is not read", f.name)
		}
	}
}

// sourceOf returns the Go files of the patterns, without tests.
func sourceOf(t *testing.T, patterns ...string) string {
	t.Helper()
	var all strings.Builder
	for _, p := range patterns {
		files, err := filepath.Glob(p)
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			all.Write(text)
		}
	}
	return all.String()
}

// goName returns the name of a field in Go.
func goName(name string) string {
	at := reflect.TypeFor[kubeletconfig.KubeletConfiguration]()
	for part := range strings.SplitSeq(name, ".") {
		if at.Kind() == reflect.Pointer {
			at = at.Elem()
		}
		if f, ok := fieldByJSONName(at, part); ok {
			name, at = f.Name, f.Type
		}
	}
	return name
}

// docs/configuration.md is generated from the tables.
func TestTheDocumentIsMadeFromTheTables(t *testing.T) {
	var doc bytes.Buffer
	doc.WriteString(head)
	for _, g := range groups {
		fmt.Fprintf(&doc, "\n### %s\n\n| field | description | default | flag |\n|---|---|---|---|\n", g.title)
		for _, f := range g.fields {
			text := map[effect]string{ignored: "*ignored*: ", refused: "**refused**: "}[f.effect] + f.doc
			if f.accepted != "" {
				text += fmt.Sprintf(" (`%s` is accepted)", f.accepted)
			}
			flag := ""
			if f.flag != "" {
				flag = "`--" + f.flag + "`"
			}
			value := f.def
			if value != "" {
				value = "`" + value + "`"
			}
			fmt.Fprintf(&doc, "| `%s` | %s | %s | %s |\n", f.name, text, value, flag)
		}
	}
	doc.WriteString(gatesHead)
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		fmt.Fprintf(&doc, "| `%s` | %s |\n", name, map[bool]string{true: "always enabled", false: "not implemented"}[gates[name]])
	}
	doc.WriteString(flagsHead)
	for _, f := range ignoredFlags() {
		fmt.Fprintf(&doc, "| `--%s` | %s | %s |\n", f.name, map[bool]string{true: "**refused**", false: "*ignored*"}[f.refused], f.reason)
	}
	file := filepath.Join("..", "..", "..", "docs", "configuration.md")
	if *update {
		require.NoError(t, os.WriteFile(file, doc.Bytes(), 0o644))
	}
	have, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, doc.String(), regexp.MustCompile("\r\n").ReplaceAllString(string(have), "\n"), "go test ./kube/kubelet/config -update writes it")
}

const head = `# Configuration of the kubelet

Made by ` + "`go test ./kube/kubelet/config -update`" + ` from the tables of package kube/kubelet/config; the same test fails if a field
of the type is missing here.

` + "`kubelet --config`" + ` names a KubeletConfiguration (kubelet.config.k8s.io/v1beta1), YAML or JSON. A field that the type does not have,
a duplicate field, or a value of another type is an error. Flags take precedence over the file. ` + "`--config-dir`" + ` names a directory of
further files, *.conf, that are merged into the first in the order of their names: a file takes precedence over those before
it, field by field; lists are replaced.

- a field without a mark is **honored**: it has the same effect as in the kubelet.
- an *ignored* field has no effect; a warning with its name and the reason is logged at the start. A zero value such as ` + "`0s`" + `
  causes no warning, but ` + "`false`" + ` does where ` + "`true`" + ` is accepted.
- with a **refused** field the kubelet does not start.
`

const gatesHead = `
### Feature gates

| gate | feature |
|---|---|
| ` + "`MemoryQoS`" + ` | enabled if it is set |
`

const flagsHead = `
### Flags of the kubelet that are not fields and have no effect

| flag | effect | reason |
|---|---|---|
`
