package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/sim/cluster"
)

// Random clusters, whose events, nodes, results and samples must agree.
func TestInvariantsOfRandomClusters(t *testing.T) {
	seedrun.Each(t, 12, func(t *testing.T, seed uint64) {
		t.Helper()
		cfg := mixed(seed, 2+int(seed%3), 150+int(seed%4)*60, 5*time.Hour)
		checkInvariants(t, cfg)
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
}

// legal are the kinds of events that may follow an event of a pod.
var legal = map[cluster.EventKind][]cluster.EventKind{
	"":                       {cluster.PodCreated},
	cluster.PodCreated:       {cluster.PodScheduled},
	cluster.PodScheduled:     {cluster.ContainerStarted},
	cluster.ContainerStarted: {cluster.ContainerExited, cluster.OOMKilled, cluster.PodEvicted},
	cluster.ContainerExited:  {cluster.ContainerStarted, cluster.PodTerminated},
	cluster.OOMKilled:        {cluster.ContainerStarted, cluster.PodTerminated},
	cluster.PodEvicted:       {cluster.PodTerminated},
	cluster.PodTerminated:    nil,
}

func checkInvariants(t *testing.T, cfg cluster.Config) {
	t.Helper()
	last, counted := map[string]cluster.EventKind{}, map[cluster.EventKind]int{}
	var now time.Duration
	pulled := map[[2]string]bool{} // by node and image
	cfg.Hooks.Event = func(e cluster.Event) {
		require.GreaterOrEqual(t, e.At, now, "events are in the order of time")
		now = e.At
		counted[e.Kind]++
		image := [2]string{e.Node, e.Message}
		switch e.Kind {
		case cluster.ImagePulled:
			require.False(t, pulled[image], "%v: the image is present", e)
			pulled[image] = true
		case cluster.ImageRemoved:
			require.True(t, pulled[image], "%v: the image is not present", e)
			pulled[image] = false
		}
		if e.Pod == "" {
			return
		}
		require.Contains(t, legal[last[e.Pod]], e.Kind, "%v after %s", e, last[e.Pod])
		last[e.Pod] = e.Kind
	}
	cfg.Policies.Filter = func(p *cluster.Pod, n *cluster.NodeInfo) bool {
		assert.LessOrEqual(t, n.Requested.CPU+p.Requests.CPU, n.Allocatable.CPU)
		assert.LessOrEqual(t, n.Requested.Memory+p.Requests.Memory, n.Allocatable.Memory)
		assert.LessOrEqual(t, n.Requested.Disk+p.Requests.Disk, n.Allocatable.Disk)
		assert.Less(t, n.Pods, n.MaxPods)
		assert.GreaterOrEqual(t, n.Used.Memory, cfg.Nodes[n.Index].Reserved.Memory)
		return true
	}
	report := run(t, cfg)

	states := map[v1.PodPhase]int{}
	var evicted, killed, restarts int
	for _, p := range report.Pods {
		states[p.Phase]++
		restarts, killed = restarts+p.Restarts, killed+p.OOMKills
		if p.Reason == "Evicted" {
			evicted++
			assert.NotEmpty(t, p.Signal)
			assert.GreaterOrEqual(t, p.Ran, p.Lost)
		}
		for _, order := range [][2]time.Duration{{p.Created, p.Scheduled}, {p.Scheduled, p.Started}, {p.Started, p.Finished}} {
			assert.True(t, order[1] == -1 || order[0] >= 0 && order[0] <= order[1], "%+v", p)
		}
		assert.LessOrEqual(t, p.Ran, cfg.Duration-p.Created)
	}
	var sum cluster.NodeResult
	for _, n := range report.Nodes {
		sum.Evictions, sum.OOMKills, sum.Pulls, sum.ImagesRemoved = sum.Evictions+n.Evictions, sum.OOMKills+n.OOMKills, sum.Pulls+n.Pulls, sum.ImagesRemoved+n.ImagesRemoved
		assert.LessOrEqual(t, n.PeakMemory, cfg.Nodes[0].Capacity.Memory, "the kernel does not let a node use more")
		assert.LessOrEqual(t, n.Pressure, cfg.Duration)
	}
	end := report.Samples[len(report.Samples)-1]
	assert.Equal(t, cfg.Duration, end.At)
	assert.Equal(t, len(report.Pods), counted[cluster.PodCreated])
	assert.Equal(t, states[v1.PodSucceeded], end.Succeeded)
	assert.Equal(t, states[v1.PodFailed], end.Failed)
	assert.Equal(t, states[v1.PodPending]+states[v1.PodRunning], end.Pending+end.Starting+end.Running+end.Restarting+end.Stopping)
	assert.Equal(t, []int{evicted + end.Stopping, killed, restarts}, []int{end.Evictions, end.OOMKills, end.Restarts})
	assert.Equal(t, []int{end.Evictions, end.OOMKills, end.Pulls, end.ImagesRemoved}, []int{sum.Evictions, sum.OOMKills, sum.Pulls, sum.ImagesRemoved})
	assert.Equal(t, []int{end.Evictions, end.OOMKills, end.Pulls, end.ImagesRemoved},
		[]int{counted[cluster.PodEvicted], counted[cluster.OOMKilled], counted[cluster.ImagePulled], counted[cluster.ImageRemoved]})
	assert.Positive(t, end.Evictions+end.OOMKills, "the cluster is under pressure")
}
