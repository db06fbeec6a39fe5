package metrics_test

import (
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/metrics"
)

// A fact is one metric of a kubelet.
type fact struct {
	path, name, typ, stability string
	labels                     []string
	buckets                    []float64
	whyNot                     string
}

func rows(t testing.TB, file string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "|"))
		}
	}
	return rows
}

// facts are the metrics of a kubelet by path and name, as its reference lists them.
func facts(t testing.TB) map[string]fact {
	t.Helper()
	all := map[string]fact{}
	for _, r := range rows(t, "testdata/kubelet.txt") {
		require.Len(t, r, 7, "%v", r)
		f := fact{path: r[0], name: r[1], typ: r[2], stability: r[3], labels: strings.Fields(r[4]), whyNot: r[6]}
		for _, b := range strings.Fields(r[5]) {
			v, err := strconv.ParseFloat(b, 64)
			require.NoError(t, err)
			f.buckets = append(f.buckets, v)
		}
		all[f.path+" "+f.name] = f
	}
	for _, r := range rows(t, "testdata/cadvisor.txt") {
		require.Len(t, r, 4, "%v", r)
		f := fact{path: metrics.CadvisorPath, name: r[0], typ: r[1], stability: "cadvisor", labels: strings.Fields(r[2]), whyNot: r[3]}
		switch {
		case strings.HasSuffix(f.name, "_scrape_error"):
		case strings.HasPrefix(f.name, "container_"):
			f.labels = append(f.labels, "container", "id", "image", "name", "namespace", "pod")
		case strings.HasPrefix(f.name, "machine_"):
			f.labels = append(f.labels, "boot_id", "machine_id", "system_uuid")
		}
		slices.Sort(f.labels)
		all[f.path+" "+f.name] = f
	}
	return all
}

// asked are our own metrics that users have requested under these names.
var asked = map[string]bool{
	"cgroup_drift_repaired_total": true,
	"prober_deferred_total":       true,
}

// Each metric of the kubelet has its name, type, labels and buckets here, or a reason
// for its absence; metrics that the kubelet does not have carry our own prefix.
func TestMetricsMatchTheKubelets(t *testing.T) {
	w := newWorld(t).known().live(t)
	all := facts(t)
	served := map[string]bool{}
	for path := range w.Handlers(w.sources) {
		for name, family := range w.families(t, path) {
			key := path + " " + name
			served[key] = true
			f, listed := all[key]
			switch {
			case listed && f.whyNot != "":
				t.Errorf("%s is served; the list marks it as absent: %s", key, f.whyNot)
			case listed:
				assert.Equal(t, f.typ, strings.ToLower(family.GetType().String()), name)
				assert.Equal(t, f.labels, labelsOf(family), name)
				sameBuckets(t, f, family)
			case asked[name], strings.HasPrefix(name, "kubeparts_"), strings.HasPrefix(name, "go_"), strings.HasPrefix(name, "process_"):
			default:
				t.Errorf("%s is no metric of a kubelet's, and not named kubeparts_…", key)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if all[key].whyNot == "" && !served[key] {
			t.Errorf("%s is not served, and no reason is given", key)
		}
	}
	for _, f := range w.Families() {
		assert.True(t, served[f.Path+" "+f.Name], "%s at %s has no sample in this test", f.Name, f.Path)
	}
}

func labelsOf(family *dto.MetricFamily) []string {
	names := []string{}
	for _, m := range family.GetMetric() {
		for _, l := range m.GetLabel() {
			if !slices.Contains(names, l.GetName()) {
				names = append(names, l.GetName())
			}
		}
	}
	slices.Sort(names)
	return names
}

// sameBuckets tolerates the rounding of the list.
func sameBuckets(t *testing.T, f fact, family *dto.MetricFamily) {
	t.Helper()
	var has []float64
	for _, b := range family.GetMetric()[0].GetHistogram().GetBucket() {
		if !math.IsInf(b.GetUpperBound(), 1) {
			has = append(has, b.GetUpperBound())
		}
	}
	if assert.Len(t, has, len(f.buckets), f.name) {
		for i := range has {
			assert.InEpsilon(t, f.buckets[i], has[i], 1e-3, f.name)
		}
	}
}
