package metrics_test

import (
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/kube/metrics"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime/cri/images"
	"github.com/kubeparts/kubeparts/volume"
)

// permitted are the permitted values of a metric's label, here and on a kubelet.
func permitted(t testing.TB) map[[2]string][]string {
	t.Helper()
	all := map[[2]string][]string{}
	for _, r := range rows(t, "testdata/values.txt") {
		require.Len(t, r, 5, "%v", r)
		require.Equal(t, r[3] == "", r[4] == "", "%v: a value that a kubelet does not have needs a reason", r)
		for _, v := range strings.Fields(r[2] + " " + r[3]) {
			all[[2]string{r[0], r[1]}] = append(all[[2]string{r[0], r[1]}], strings.Trim(v, `"`))
		}
	}
	return all
}

// Dashboards and alerts select by the values of labels.
func TestLabelValuesMatchTheKubelets(t *testing.T) {
	w := newWorld(t).known().live(t)
	for _, state := range []podworker.State{podworker.Syncing, podworker.Terminating, podworker.Cleaning} {
		w.PodWorker().Synced(podworker.SyncInfo{State: state})
	}
	for _, operation := range []string{"volume_mount", "volume_unmount", "volume_stage", "volume_unstage", "volume_fs_resize", "volume_refresh"} {
		w.Volumes().Operated(volume.OperationInfo{Operation: operation, Plugin: "kubernetes.io/csi:d", Total: 1})
	}
	for _, size := range []uint64{0, 1, 10 << 20, 10<<20 + 1, 100 << 20, 1 << 30, 50 << 30, 200 << 30} {
		w.remote.Images().Pulled(images.PullInfo{Size: size})
	}
	for _, message := range []string{"which may swap", "static CPU manager", "static memory manager", "enough capacity", "else"} {
		w.Allocation().Decided(allocation.DecisionInfo{After: v1.PodReasonInfeasible, Message: message})
	}
	for _, kind := range []prober.Kind{prober.Liveness, prober.Readiness, prober.Startup} {
		w.Prober().Ran(prober.AttemptInfo{Pod: web(), Kind: kind})
	}
	permitted, seen := permitted(t), map[[2]string]bool{}
	for path := range w.Handlers(w.sources) {
		for name, family := range w.families(t, path) {
			for label, values := range valuesOf(family) {
				if may, known := permitted[[2]string{name, label}]; known {
					seen[[2]string{name, label}] = true
					assert.Subset(t, may, values, "%s of %s at %s", label, name, path)
				}
			}
		}
	}
	for of := range permitted {
		assert.True(t, seen[of], "%v has no sample in this test, or a kubelet's label is missing", of)
	}
	assert.Equal(t, []string{`kubelet_restarted_pods_total{static=""} 1`}, w.lines(t, metrics.Path, "kubelet_restarted_pods_total"))
	assert.Contains(t, w.scrape(t, metrics.Path), `kubelet_desired_pods{static=""} 1`)
	assert.Contains(t, w.scrape(t, metrics.Path), `kubelet_image_pull_duration_seconds_count{image_size_in_bytes="0-10MB"} 2`, "its MB are MiB, and 10 of them are in the first")
	assert.Contains(t, w.scrape(t, metrics.Path), `storage_operation_duration_seconds_count{migrated="false",operation_name="unmount_device",status="success",volume_plugin="kubernetes.io/csi:d"} 1`)
}

func valuesOf(family *dto.MetricFamily) map[string][]string {
	all := map[string][]string{}
	for _, m := range family.GetMetric() {
		for _, l := range m.GetLabel() {
			if !slices.Contains(all[l.GetName()], l.GetValue()) {
				all[l.GetName()] = append(all[l.GetName()], l.GetValue())
			}
		}
	}
	return all
}
