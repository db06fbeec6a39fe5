package eviction_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/eviction"
)

func TestPodsAreMeasuredOnlyIfThePlanDependsOnThem(t *testing.T) {
	for name, tc := range map[string]struct {
		change       func(w *world)
		node, all    int // measurements of the node alone, and with its pods
		evicted, err string
	}{
		"nothing is low":         {func(w *world) { w.other["memory.available"] = 10 }, 1, 0, "", ""},
		"memory is low":          {func(*world) {}, 1, 1, "hog", ""},
		"a soft threshold waits": {func(w *world) { w.config.Policy.Thresholds[0].GracePeriod = 1e9 }, 1, 0, "", ""},
		"a pod has a limit": {func(w *world) {
			w.other["memory.available"] = 10
			w.pods[0].Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("1Gi")}
		}, 0, 1, "", ""},
		"a pod has a limit that is not enforced": {func(w *world) {
			w.other["memory.available"], w.config.Policy.NoLocalLimits = 10, true
			w.pods[0].Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("1Gi")}
		}, 1, 0, "", ""},
		"the node cannot be measured": {func(w *world) { w.summary = false }, 1, 0, "", "eviction: summary: no response"},
		"the pods cannot be measured": {func(w *world) { w.silentAfter = true }, 1, 1, "", "eviction: summary: no response"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.capacity["memory.available"], w.other["memory.available"] = 100, 95
			w.config.Policy.Thresholds = []eviction.Threshold{{Signal: "memory.available", Value: eviction.Value{Quantity: resource.NewQuantity(10, resource.DecimalSI)}}}
			w.pods = []*worldPod{{Pod: podOf("hog"), stats: true}}
			tc.change(w)
			w.alone = true
			cfg, node, all := w.configured(), 0, 0
			cfg.Summary = func(ctx context.Context, pods bool) (*statsapi.Summary, error) {
				if pods {
					all++
				} else {
					node++
				}
				return w.measure(ctx, pods)
			}
			m, err := eviction.New(cfg)
			require.NoError(t, err)
			result, err := m.Pass(t.Context())
			if tc.err == "" {
				assert.NoError(t, err)
			} else {
				assert.EqualError(t, err, tc.err)
			}
			assert.Equal(t, []int{tc.node, tc.all}, []int{node, all})
			var evicted string
			for _, e := range result.Evicted {
				evicted += e.Pod.Name
			}
			assert.Equal(t, tc.evicted, evicted)
		})
	}
}
