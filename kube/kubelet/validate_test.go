package kubelet

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/runtime"
)

var writeChecks = flag.Bool("checks", false, "rewrite docs/configuration-checks.md")

// A validation is what a kubelet does with a configuration, as tools/kubernetes/facts writes it.
type validation struct {
	Warning string   `json:"warning"`
	Errors  []string `json:"errors"`
}

// differences are the reasons of validations that differ from those of the kubelet.
var differences = func() map[string]string {
	const anyPort = "-1 is any free port"
	all := map[string]string{
		"port -1":               anyPort,
		"readOnlyPort negative": anyPort,
		"healthzPort negative":  anyPort,
		"runOnce":               "the text names the alternative",
	}
	if runtime.KubernetesMinor >= 38 {
		const removed = "a gate that was removed is accepted with the value to which it was locked"
		all["gate without its dependency"], all["locked gate"], all["locked gate with its value"] = removed, removed, removed
	}
	return all
}()

// tools/kubernetes/facts passes the same configurations to the validation of the kubelet.
func TestValidationsAreEqualToTheKubelets(t *testing.T) {
	var configurations map[string]string
	var theirs map[string]validation
	readYAML(t, "configurations.yaml", &configurations)
	readYAML(t, "validations.yaml", &theirs)
	require.Equal(t, slices.Sorted(maps.Keys(configurations)), slices.Sorted(maps.Keys(theirs)), "GOWORK=off go test ./facts -update in tools/kubernetes")
	ours := map[string]validation{}
	for name, fields := range configurations {
		ours[name] = validate(fields)
		same := slices.Equal(ours[name].Errors, theirs[name].Errors) && (ours[name].Warning == "") == (theirs[name].Warning == "")
		if _, differs := differences[name]; differs {
			assert.False(t, same, "%s: it has a reason to differ", name)
			continue
		}
		assert.Equal(t, theirs[name].Errors, ours[name].Errors, name)
		assert.Equal(t, theirs[name].Warning == "", ours[name].Warning == "", "%s: %s", name, ours[name].Warning)
	}
	for name := range differences {
		assert.Contains(t, configurations, name)
	}
	doc := checksDocument(configurations, theirs, ours)
	file := filepath.Join("..", "..", "docs", "configuration-checks.md")
	if *writeChecks {
		require.NoError(t, os.WriteFile(file, []byte(doc), 0o644))
	}
	have, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, doc, strings.ReplaceAll(string(have), "\r\n", "\n"), "go test ./kube/kubelet -run TestValidations -checks writes it")
}

func TestWhatRequiresCgroupV2(t *testing.T) {
	assert.NoError(t, stores.CheckCgroupV1(decode(t, "singleProcessOOMKill: true\nmemorySwap: {swapBehavior: NoSwap}\n")))
	assert.EqualError(t, stores.CheckCgroupV1(decode(t, "singleProcessOOMKill: false\n")), "invalid configuration: singleProcessOOMKill must not be explicitly set to false when using cgroup v1")
	assert.EqualError(t, stores.CheckCgroupV1(decode(t, "memorySwap: {swapBehavior: LimitedSwap}\n")), "swap feature is enabled and LimitedSwap but it is only supported with cgroupv2")
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("config", "testdata", file))
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, into))
}

// validate returns the validation of this package about fields in YAML.
func validate(fields string) (v validation) {
	const head = "apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration, "
	text := strings.ReplaceAll(head, ", ", "\n") + fields
	if flow, ok := strings.CutPrefix(fields, "{"); ok {
		text = "{" + head + flow
	}
	k, warnings, err := config.Decode([]byte(text))
	for _, w := range warnings {
		if strings.Contains(w, "unknown field") || strings.Contains(w, "duplicate field") {
			v.Warning = w
		}
	}
	if err == nil {
		err = stores.Validate(k)
	}
	if err != nil {
		v.Errors = strings.Split(err.Error(), "\n")
		slices.Sort(v.Errors)
	}
	return v
}

// checksDocument returns docs/configuration-checks.md.
func checksDocument(configurations map[string]string, theirs, ours map[string]validation) string {
	var doc strings.Builder
	doc.WriteString(checksHead)
	for _, name := range slices.Sorted(maps.Keys(configurations)) {
		here := "the same"
		if reason, ok := differences[name]; ok {
			here = fmt.Sprintf("%s: %s", ours[name], reason)
		}
		fields := regexp.MustCompile(`\s+`).ReplaceAllString(configurations[name], " ")
		fmt.Fprintf(&doc, "| `%s` | %s | %s |\n", cell(fields), cell(theirs[name].String()), cell(here))
	}
	return doc.String()
}

// String returns the text of a validation in the document.
func (v validation) String() string {
	switch {
	case len(v.Errors) > 0:
		return "refused: " + strings.Join(v.Errors, "; ")
	case v.Warning != "":
		return "accepted with a warning"
	}
	return "accepted"
}

// cell escapes the text of a cell of a table.
func cell(text string) string { return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text) }

const checksHead = `# Checks of the configuration

Made by ` + "`go test ./kube/kubelet -run TestValidations -checks`" + `. The validations of kubelet 1.37.2 are those of its own code, to which
` + "`GOWORK=off go test ./facts`" + ` in tools/kubernetes gives the same configurations. A kubelet panics with the errors about feature
gates. Checks that depend on the machine are not among the configurations: reserved CPUs that do not exist, reservations above the capacity, swap, cgroup v1 with LimitedSwap, NUMA nodes.

| configuration | kubelet 1.37.2 | here |
|---|---|---|
`
