package metrics_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/kube/metrics"
)

func TestResourceMetricsAreGathered(t *testing.T) {
	m, err := metrics.New(metrics.Config{NodeName: "n1", WithoutProcess: true})
	require.NoError(t, err)
	gather := func(err error) map[string]float64 {
		families, failed := m.GatherResource(&statsapi.Summary{Node: statsapi.NodeStats{Memory: &statsapi.MemoryStats{WorkingSetBytes: new(uint64(7))}}}, err)
		require.NoError(t, failed)
		values := map[string]float64{}
		for _, f := range families {
			values[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
		}
		return values
	}
	assert.Equal(t, map[string]float64{"node_memory_working_set_bytes": 7, "resource_scrape_error": 0}, gather(nil))
	assert.EqualValues(t, 1, gather(errors.New("no runtime"))["resource_scrape_error"])
}
