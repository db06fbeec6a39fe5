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

	"github.com/kubeparts/kubeparts/docs"
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
	source := sourceOf(t, "gates.go", "keyalgorithms.go", filepath.Join("..", "*.go"), filepath.Join("..", "internal", "*", "*.go"), filepath.Join("..", "..", "..", "examples", "kubelet", "*.go"))
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

var marks = map[effect]string{ignored: "*ignored*: ", refused: "**refused**: "}

// docs/configuration.md is generated from the tables.
func TestTheDocumentIsMadeFromTheTables(t *testing.T) {
	var doc bytes.Buffer
	doc.WriteString(head)
	for _, g := range groups {
		fmt.Fprintf(&doc, "\n### %s\n\n| field | description | default | flag |\n|---|---|---|---|\n", g.title)
		for _, f := range g.fields {
			text := marks[f.effect] + f.doc
			if f.accepted != "" {
				text += fmt.Sprintf(" (`%s` is accepted)", f.accepted)
			}
			if f.since > 0 {
				text += fmt.Sprintf(" (since Kubernetes 1.%d)", f.since)
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
	doc.WriteString(userNamespace)
	doc.WriteString(flagsHead)
	rows := map[string]string{"help": "| print the flags"}
	for f := range fields {
		if f.flag != "" {
			rows[f.flag] = fmt.Sprintf("%s | %s`%s`", f.flagKind(), marks[f.effect], f.name)
		}
	}
	for _, f := range nodeFlags {
		text := marks[f.effect] + f.doc
		if f.accepted != "" {
			text += fmt.Sprintf(" (`%s` is accepted)", f.accepted)
		}
		if f.removed != "" {
			text += "; removed in Kubernetes " + f.removed
		}
		rows[f.name] = f.kind + " | " + text
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(&doc, "| `--%s` | %s |\n", name, rows[name])
	}
	const file = "configuration.md"
	if *update {
		require.NoError(t, os.WriteFile("../../../docs/"+file, doc.Bytes(), 0o644))
		return
	}
	have, err := docs.Files.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, doc.String(), regexp.MustCompile("\r\n").ReplaceAllString(string(have), "\n"), "go test ./kube/kubelet/config -update writes it")
}

const head = `# Configuration of the kubelet

Made by ` + "`go test ./kube/kubelet/config -update`" + ` from the tables of package kube/kubelet/config; the same test fails if a field
of the type is missing here.

` + "`kubelet --config`" + ` names a KubeletConfiguration (kubelet.config.k8s.io/v1beta1), YAML or JSON. As in the kubelet, a field that the
type does not have is ignored and the last of duplicate fields is used, with a warning (with ` + "`--strict-config`" + ` both are errors), a value of
another type is an error, and relative paths are below the directory of the file. [configuration-checks.md](configuration-checks.md) has the
values with which the kubelet does not start. Flags take precedence over the file. ` + "`--config-dir`" + ` names a directory of
further files, *.conf, also in directories below it, that are merged into the first in the order of their paths: a file takes
precedence over those before it, field by field; lists are replaced.

- a field without a mark is **honored**: it has the same effect as in the kubelet.
- an *ignored* field has no effect; a warning with its name and the reason is logged at the start. A zero value such as ` + "`0s`" + `
  causes no warning, but ` + "`false`" + ` does where ` + "`true`" + ` is accepted.
- with a **refused** field the kubelet does not start.
`

const gatesHead = `
### Feature gates

The gates of Kubernetes 1.37 are accepted. An unknown gate, a locked gate with another value, and a gate that is enabled without a gate that it
depends on prevent the start, as with the kubelet. AllAlpha and AllBeta are supported. A gate that is missing below is not read by a kubelet either.

| gate | feature |
|---|---|
| ` + "`AllowDNSOnlyNodeCSR`, `CRIListStreaming`, `CSIVolumeHealth`, `LocalStorageCapacityIsolationFSQuotaMonitoring`" + ` | enabled if it is set |
| ` + "`ComponentFlagz`, `ComponentStatusz`" + ` | ` + "`/flagz` and `/statusz`" + `, enabled unless it is set to false |
| ` + "`KubeletInUserNamespace`" + ` | [in a user namespace](#in-a-user-namespace) errors of operations that only the initial one permits are logged, unless it is set to false |
| ` + "`MemoryQoS`" + ` | ` + "`memoryThrottlingFactor` and `memoryReservationPolicy`" + ` have an effect, unless it is set to false |
| ` + "`PodAndContainerStatsFromCRI`" + ` | ` + "`/metrics/cadvisor`" + ` has the metrics of pods and containers that the runtime computes, if it is set and the runtime supports them |
| ` + "`PodLevelResourceManagers`" + ` | Guaranteed pods with pod-level resources can have exclusive CPUs and memory, if it is set |
| ` + "`PodsAPI`" + ` | the pods API, enabled unless it is set to false |
| ` + "`SELinuxMount`" + ` | persistent volumes of all access modes are mounted with the SELinux label of their pod, not only those of ReadWriteOncePod, unless it is set to false |
| ` + "`UserNamespacesHostNetworkSupport`, `VolumeBindMountOptions`" + ` | declared by the node if it is set and the runtime supports it; pods that require it are rejected otherwise |
`

const userNamespace = `
### In a user namespace

A kubelet can run as an unprivileged user: as user 0 of a user namespace that owns its namespaces for mounts, the network and processes, as
` + "`unshare --map-root-user --mount --net --pid --fork --mount-proc`" + ` and rootlesskit create them. There the kernel denies what belongs to the
whole machine. With the gate ` + "`KubeletInUserNamespace`" + ` these errors are logged and the kubelet starts; if it is set to false, the kubelet does not
start, and the error names the gate:

- The kernel parameters of Kubernetes cannot be set. With ` + "`protectKernelDefaults`" + ` other values remain an error.
- ` + "`/dev/kmsg`" + ` cannot be read. OOM kills are then detected by the cgroups of pods, if there are any.
- The cgroups of pods cannot be created. Limits of pods are then not enforced, and the condition Ready of the node has a warning. A kubelet
  does not start in this case, unless ` + "`cgroupsPerQOS`" + ` is false and ` + "`enforceNodeAllocatable`" + ` is [none].

The OOM score and the limit of open files are not changed where that is denied, whatever the value of the gate. Other errors prevent the
start as elsewhere. The node reports ` + "`status.nodeInfo.runningInUserNamespace`" + `, unless the gate is set to false.

Only the kernel decides about the rest: volumes of kinds that cannot be mounted in a user namespace, and users and groups that are not mapped
there, fail with their error. tmpfs volumes have no option noswap. Plain processes cannot have supplemental groups where setgroups is denied.
The runtime must be configured for such a namespace as well; containerd requires ` + "`restrict_oom_score_adj`" + `, and ` + "`disable_cgroup`" + ` without cgroups. With cgroup v1, runc 1.1 creates cgroups also then: containers do not start.
The root directory, ` + "`podLogsDir`" + ` and the socket of the runtime must be below directories that the user owns.
`

const flagsHead = `
### Flags

All flags of kubelet 1.37.2, those that releases since 1.34 have removed, and three for fields that have none in the kubelet
(pod-logs-dir, shutdown-grace-period and shutdown-grace-period-critical-pods). Names may have underscores instead of dashes. A value
follows ` + "`=`" + ` or is the next argument, except that of bool. Elements of strings and entries of maps are separated by commas; a flag of these
kinds that is given again adds to them, of any other kind the last one is used. The first one replaces what the file has, except that
` + "`--feature-gates`" + ` changes only the gates that it names.

A flag is used as the field that is named here, or has the effect that is described. A value that is *ignored* causes a warning at the start,
except that an empty one and ` + "`false`" + ` do not; with one that is **refused** the kubelet does not start. ` + "`examples/kubelet --help`" + ` also lists the
flags that a kubelet does not have.

Without ` + "`--config` and `--config-dir`" + ` a kubelet permits everything to anonymous clients and opens port 10255; this one has the defaults
above, does not evict pods to protect the node, and creates the cgroups of pods below /kubeparts, unless the flags for these are given.
With one of them and without a cluster it opens 127.0.0.1:10248 for ` + "`/healthz`" + `, unless ` + "`healthzPort`" + ` is set, and 10250 for the API, unless
` + "`port`" + ` is set or the configuration requires an API server for it. A port that is in use is an error, also that of ` + "`/healthz`" + `. As with the kubelet,
` + "`/flagz`" + ` has the values of the flags, not those of the file. The values of ` + "`staticPodURLHeader`" + `, and user, query and fragment of
` + "`staticPodURL`" + `, are masked in ` + "`/configz`, `/flagz`" + ` and the log; a kubelet shows them in ` + "`/configz`" + `.

| flag | value | effect |
|---|---|---|
`
