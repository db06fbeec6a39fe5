package cluster_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim/cluster"
)

func TestAnImageHasATitleWithTotalsAndNoEmptyDiagram(t *testing.T) {
	draw := func(disk int64) string {
		var out strings.Builder
		r := cluster.Report{Duration: time.Hour, Nodes: []*cluster.NodeResult{{}}, Pods: []*cluster.PodResult{{}, {}}, Samples: []cluster.Sample{
			{}, {At: time.Hour, Succeeded: 4, Failed: 3, Evictions: 2, OOMKills: 1, Restarts: 9, Capacity: cluster.Resources{Memory: 1 << 30, Disk: disk}},
		}}
		require.NoError(t, r.WriteSVG(&out))
		return out.String()
	}
	const title = "<title>1 nodes, 2 pods, 1h0m0s: 4 succeeded, 3 failed, 2 evictions, 1 OOM kills, 9 restarts</title>"
	assert.Contains(t, draw(0), title)
	assert.NotContains(t, draw(0), ">Disk<")
	assert.Contains(t, draw(1<<30), ">Disk<")
}
