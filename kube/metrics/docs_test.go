package metrics_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/metrics"
)

var update = flag.Bool("update", false, "rewrite docs/metrics.md")

const head = `# Metrics

Made by ` + "`go test ./kube/metrics -update`" + ` from the code of kube/metrics and from its testdata, the lists of the metrics of a kubelet 1.36.3 and of its cAdvisor v0.56.2; the same test fails if it is out of date, others if a name, a type, a label, a bucket or what a label says is not a kubelet's.

- **as on a kubelet**: how stable that metric is there: name, type, labels and buckets are the same. *hidden*: a kubelet has it, and serves it only if told to. *no*: it is ours.
- **comes from**: the hook that it is counted by, or which of metrics.Sources is read when somebody scrapes.

Read by others so far: a metrics-server v0.9.0 over /metrics/resource, behind the kube-apiserver and the kubectl top of Kubernetes 1.36.3, with containerd 2.4: CPU and memory of containers and of the node are what the kernel's files say (` + "`bash .ci/run observe`" + `). And, tried by hand, a Prometheus v0.315.0 that scraped all five paths, with 53 expressions that recording rules, alerts and dashboards of kubernetes-mixin and others are made of: 49 return series with the labels that they are joined by (namespace, pod, container, node, instance). The other four, reads and writes of disks, had nothing to return on that machine, whose kernel counts none for cgroups. Metrics of claims were not tried: there was no driver.

What differs from a kubelet at /metrics/cadvisor:

- What a pod's network does is told of its cgroup, with an empty image and name; a kubelet tells it of the sandbox, whose container label is empty, too.
- image is what the pod asks for; a kubelet has the name that the runtime gave it.
- container_fs_usage_bytes and container_fs_limit_bytes are there for containers; on a kubelet with containerd they are not.
- Disks of which the kernel has no name are one, with an empty device; loop devices have theirs.

/metrics has go_* and process_* of the Prometheus library as well.
`

// docs/metrics.md has every metric that is served, and every metric of a kubelet's
// that is not.
func TestTheListOfMetricsIsCurrent(t *testing.T) {
	all := facts(t)
	var b strings.Builder
	b.WriteString(head)
	families := newWorld(t).Families()
	for _, path := range []string{metrics.Path, metrics.ResourcePath, metrics.CadvisorPath, metrics.ProbesPath, metrics.SLIsPath} {
		fmt.Fprintf(&b, "\n## %s\n\n| metric | type | labels | as on a kubelet | comes from | what it is |\n|---|---|---|---|---|---|\n", path)
		here := slices.DeleteFunc(slices.Clone(families), func(f metrics.Family) bool { return f.Path != path })
		slices.SortFunc(here, func(a, b metrics.Family) int { return cmp.Compare(a.Name, b.Name) })
		for _, f := range here {
			assert.NotContains(t, f.Help+f.From, "|", "%s: it would break the table", f.Name)
			assert.True(t, strings.HasSuffix(f.Help, "."), "%s: a sentence ends in a full stop", f.Name)
			same := "no"
			if of, ok := all[path+" "+f.Name]; ok {
				same = of.stability
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", f.Name, typeOf(f), strings.Join(f.Labels, ", "), same, f.From, f.Help)
		}
	}
	b.WriteString("\n## Not served\n\nMetrics of a kubelet's that are not there, and why.\n\n| metric | at | on a kubelet | why not |\n|---|---|---|---|\n")
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if f := all[key]; f.whyNot != "" {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.name, f.path, f.stability, f.whyNot)
		}
	}
	file := filepath.Join("..", "..", "docs", "metrics.md")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
		return
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	has, wants := strings.Split(strings.ReplaceAll(string(got), "\r\n", "\n"), "\n"), strings.Split(b.String(), "\n")
	for i := range wants {
		if i == len(has) || has[i] != wants[i] {
			t.Fatalf("docs/metrics.md is out of date from line %d on, which should be %q: go test ./kube/metrics -update", i+1, wants[i])
		}
	}
	assert.Len(t, has, len(wants), "go test ./kube/metrics -update")
}

// typeOf is the type, and of a histogram its buckets.
func typeOf(f metrics.Family) string {
	if len(f.Buckets) == 0 {
		return f.Type
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
	return fmt.Sprintf("%s, %d buckets from %s to %s", f.Type, len(f.Buckets), number(f.Buckets[0]), number(f.Buckets[len(f.Buckets)-1]))
}
