package main

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

// rows returns the table by the names of its fields.
func rows(t *testing.T) map[string]field {
	t.Helper()
	all := map[string]field{}
	for _, c := range chapters {
		for _, f := range c.fields {
			assert.NotContains(t, all, f.name)
			all[f.name] = f
		}
	}
	return all
}

// The type itself is walked, so that a field that a new Kubernetes brings is missed.
func TestEachFieldOfAKubeletConfigurationIsInTheTable(t *testing.T) {
	all := rows(t)
	var walk func(of reflect.Type, prefix string)
	walk = func(of reflect.Type, prefix string) {
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		for f := range of.Fields() {
			name := prefix + jsonName(f)
			if _, ok := all[name]; ok || f.Anonymous {
				delete(all, name)
				continue
			}
			below := f.Type
			if below.Kind() == reflect.Pointer {
				below = below.Elem()
			}
			if below.Kind() != reflect.Struct || below.PkgPath() == "k8s.io/apimachinery/pkg/apis/meta/v1" {
				assert.Fail(t, "nothing is said of a field", "%s (%s.%s)", name, of.Name(), f.Name)
				continue
			}
			walk(below, name+".")
		}
	}
	walk(reflect.TypeFor[kubeletconfig.KubeletConfiguration](), "")
	assert.Empty(t, all, "the table has what is no field")
}

// What the rows say is so: the file that is named reads the field, the flag is there,
// defaults and values that are fine are ones that the field can have.
func TestTheTableOfFieldsIsTrue(t *testing.T) {
	flags := declare(new(defaulted()), "node")
	for name, f := range rows(t) {
		var cfg kubeletconfig.KubeletConfiguration
		value, ok := f.value(&cfg, true)
		require.True(t, ok, name)
		assert.NotEmpty(t, f.what, name)
		for _, text := range []string{f.def, f.fine} {
			if text != "" {
				of := reflect.New(value.Type())
				require.NoError(t, yaml.UnmarshalStrict([]byte(text), of.Interface()), name)
			}
		}
		if f.flag != "" {
			assert.NotNil(t, flags.Lookup(f.flag), "%s: there is no --%s", name, f.flag)
		}
		if f.does != honoured {
			assert.Empty(t, f.in, name)
			continue
		}
		source, err := os.ReadFile(f.in)
		require.NoError(t, err, "%s: which file reads it?", name)
		assert.Regexp(t, `\.`+goName(f.name)+`\b`, string(source), "%s does not read %s", f.in, name)
	}
}

// goName is what a field is called in Go.
func goName(name string) string {
	at := reflect.TypeFor[kubeletconfig.KubeletConfiguration]()
	for part := range strings.SplitSeq(name, ".") {
		if at.Kind() == reflect.Pointer {
			at = at.Elem()
		}
		if f, ok := spelled(at, part); ok {
			name, at = f.Name, f.Type
		}
	}
	return name
}

func defaulted() (o options) {
	defaults(&o.kubelet)
	return o
}

// docs/configuration.md is made from the table and the flags.
func TestTheDocumentOfTheConfigurationIsTheTable(t *testing.T) {
	var doc bytes.Buffer
	doc.WriteString(configurationHead)
	for _, c := range chapters {
		fmt.Fprintf(&doc, "\n### %s\n\n| field | what it decides | default | flag |\n|---|---|---|---|\n", c.title)
		for _, f := range c.fields {
			what := f.what
			switch f.does {
			case warned:
				what = "*warned about*: " + what
			case refused:
				what = "**refused**: " + what
			}
			if f.fine != "" {
				what += fmt.Sprintf(" (nothing is said of `%s`)", f.fine)
			}
			fmt.Fprintf(&doc, "| `%s` | %s | %s | %s |\n", f.name, what, code(f.def), code(dashed(f.flag)))
		}
	}
	doc.WriteString(gatesHead)
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		fmt.Fprintf(&doc, "| `%s` | %v |\n", name, map[bool]string{true: "always there", false: "not there"}[gates[name]])
	}
	doc.WriteString(flagsHead)
	flags := declare(new(defaulted()), "HOSTNAME")
	for _, g := range flags.groups {
		fmt.Fprintf(&doc, "\n### %s\n\n| flag | what it is for |\n|---|---|\n", g.title)
		for _, name := range g.names {
			value, usage := flags.describe(name)
			fmt.Fprintf(&doc, "| `--%s%s` | %s |\n", name, value, strings.ReplaceAll(usage, "|", "\\|"))
		}
	}
	file := filepath.Join("..", "..", "docs", "configuration.md")
	if *update {
		require.NoError(t, os.WriteFile(file, doc.Bytes(), 0o644))
	}
	is, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, doc.String(), regexp.MustCompile("\r\n").ReplaceAllString(string(is), "\n"), "go test ./examples/kubelet -run Configuration -update writes it")
}

func dashed(name string) string {
	if name == "" {
		return ""
	}
	return "--" + name
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

const configurationHead = `# The configuration of the reference agent

Made by ` + "`go test ./examples/kubelet -run Configuration -update`" + ` from the table in examples/kubelet/fields.go and the agent's
flags; the same test fails if a field of the type is missing here.

## The file

` + "`--config`" + ` names a KubeletConfiguration (kubelet.config.k8s.io/v1beta1), YAML or JSON, as a kubelet has it. A field that the
type does not have, that is there twice, or that has a value of another type is an error, as in a kubelet. Flags win over
the file. ` + "`--config-dir`" + ` names a directory of more such files, *.conf, that are merged into the first in the order of their
names: what a file has wins over those before it, field by field; lists are replaced as a whole.

Every field of the type is in one of these tables:

- a field that is **honoured** decides here what it decides in a kubelet; the default is what holds where the file says nothing.
- a field that is *warned about* changes nothing, and the agent says so by name when it starts, with the reason given here. A zero
  value, as ` + "`0s`" + `, asks for nothing and is not warned about; but a ` + "`false`" + ` is where ` + "`true`" + ` is fine.
- with a field that is **refused** the agent does not start.
`

const gatesHead = `
### Feature gates

| gate | what it stands for |
|---|---|
| ` + "`MemoryQoS`" + ` | is there if it is set |
`

const flagsHead = `
## The flags

As ` + "`agent --help`" + ` prints them. Names that a kubelet has for a flag work as well.
`

func TestFieldsOfWhichNothingComesAreNamedWithTheReason(t *testing.T) {
	file := configFile(t, "hairpinMode: none\nserializeImagePulls: true\ncontentType: \"\"\niptablesDropBit: 0\nlogging: {flushFrequency: 0, verbosity: 0, options: {json: {infoBufferSize: \"0\"}}}\n")
	o, err := parseFlags([]string{"--manifests=/b", "--config=" + file})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"hairpinMode changes nothing: the CNI plugin decides whether a pod reaches itself by its service (bridge: hairpinMode)",
		"iptablesDropBit changes nothing: kube-proxy and the CNI plugins make their own chains",
	}, o.warnings)
}

// A zero value is one that somebody has asked for, if the file has it.
func TestWhetherAFileHasAFieldCounts(t *testing.T) {
	const says = "rotateCertificates changes nothing: a certificate that the agent has asked for is always renewed, another never"
	for lines, want := range map[string][]string{
		"":                            nil,
		"rotateCertificates: true\n":  nil,
		"rotateCertificates: false\n": {says},
		"rotateCertificates: null\n":  nil,
	} {
		o, err := parseFlags([]string{"--manifests=/b", "--config=" + configFile(t, lines)})
		require.NoError(t, err)
		assert.Equal(t, want, o.warnings, lines)
	}
}

func TestAFieldThatIsRefusedIsAnError(t *testing.T) {
	_, err := parseFlags([]string{"--manifests=/b", "--config=" + configFile(t, "runOnce: true\nenableControllerAttachDetach: false\n")})
	require.ErrorContains(t, err, "runOnce: this agent runs until it is stopped")
	require.ErrorContains(t, err, "enableControllerAttachDetach: volumes are attached by the cluster's controller only")
	_, err = parseFlags([]string{"--manifests=/b", "--config=" + configFile(t, "runOnce: false\nenableControllerAttachDetach: true\n")})
	require.NoError(t, err)
}
