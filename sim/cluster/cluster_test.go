package cluster_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/sim/cluster"
)

// history runs the simulation and returns its events of the given kinds, one per line.
func history(t testing.TB, cfg cluster.Config, kinds ...cluster.EventKind) string {
	t.Helper()
	var lines []string
	cfg.Hooks.Event = func(e cluster.Event) {
		for _, k := range kinds {
			if e.Kind == k {
				lines = append(lines, strings.TrimSpace(fmt.Sprint(e.At.Round(time.Second), " ", e.Pod+e.Node, " ", e.Kind, " ", e.Message)))
			}
		}
	}
	run(t, cfg)
	return strings.Join(lines, "\n")
}

// one returns a cluster of one node with plenty of everything.
func one(duration time.Duration, pods ...cluster.Pod) cluster.Config {
	return cluster.Config{
		Nodes: []cluster.Node{{Name: "/n", Capacity: cluster.Resources{CPU: 10000, Memory: 10 * gib, Disk: 100 * gib}}},
		Pods:  pods, Duration: duration,
	}
}

func TestACrashingContainerBacksOffAsInKubernetes(t *testing.T) {
	cfg := one(20*time.Minute, cluster.Pod{Name: "a", RunTime: time.Second, ExitCode: 1})
	assert.Equal(t, `0s a/n started 0
1s a/n started 1
12s a/n started 2
33s a/n started 3
1m14s a/n started 4
2m35s a/n started 5
5m16s a/n started 6
10m17s a/n started 7
15m18s a/n started 8`, history(t, cfg, cluster.ContainerStarted))

	var restarts []cluster.Restart
	cfg.Policies.Backoff = func(r cluster.Restart) time.Duration {
		restarts = append(restarts, r)
		return time.Minute
	}
	cfg.Duration = 3 * time.Minute
	assert.Equal(t, "0s a/n started 0\n1m1s a/n started 1\n2m2s a/n started 2", history(t, cfg, cluster.ContainerStarted))
	require.NotEmpty(t, restarts)
	assert.Equal(t, "a", restarts[0].Pod.Name)
	assert.Equal(t, v1.RestartPolicyAlways, restarts[0].Pod.RestartPolicy)
	assert.EqualValues(t, 1, restarts[0].ExitCode)
	assert.Equal(t, time.Second, restarts[0].Ran)
	assert.EqualValues(t, 2, restarts[len(restarts)-1].Restarts)
}

func TestTheRestartPolicyDecidesThePhase(t *testing.T) {
	report := run(t, one(time.Hour,
		cluster.Pod{Name: "job", RunTime: time.Minute, RestartPolicy: v1.RestartPolicyNever},
		cluster.Pod{Name: "bad", RunTime: time.Minute, RestartPolicy: v1.RestartPolicyNever, ExitCode: 3},
		cluster.Pod{Name: "retried", RunTime: time.Minute, RestartPolicy: v1.RestartPolicyOnFailure, ExitCode: 3},
		cluster.Pod{Name: "done", RunTime: time.Minute, RestartPolicy: v1.RestartPolicyOnFailure},
		cluster.Pod{Name: "replaced", RunTime: 50 * time.Minute, RestartPolicy: v1.RestartPolicyNever, ExitCode: 1, Recreate: true},
	))
	got := map[string]string{}
	for _, p := range report.Pods {
		got[p.Name] = fmt.Sprint(p.Phase, " ", p.Reason, " ", p.Restarts > 0, " ", p.Ran)
	}
	assert.Equal(t, "Succeeded Completed false 1m0s", got["job"])
	assert.Equal(t, "Failed Error false 1m0s", got["bad"])
	assert.Contains(t, got["retried"], "Running  true")
	assert.Equal(t, "Succeeded Completed false 1m0s", got["done"])
	assert.Equal(t, "Failed Error false 50m0s", got["replaced"])
	assert.Equal(t, "Running  false 9m59s", got["replaced.1"])
}

func TestImagesArePulledOneAtATime(t *testing.T) {
	cfg := one(time.Hour,
		cluster.Pod{Name: "a", Image: "big"}, cluster.Pod{Name: "b", Image: "small"},
		cluster.Pod{Name: "c", Image: "big"}, cluster.Pod{Name: "d", Image: "unlisted"},
	)
	cfg.Images = map[string]int64{"big": 600 * mib, "small": 60 * mib}
	cfg.Kubelet.PullBandwidth = 10 * mib
	assert.Equal(t, `1m0s /n pulled big
1m0s a/n started 0
1m0s c/n started 0
1m6s /n pulled small
1m6s b/n started 0
1m6s /n pulled unlisted
1m6s d/n started 0`, history(t, cfg, cluster.ImagePulled, cluster.ContainerStarted))
}

func TestUnusedImagesAreRemovedWhenTheDiskIsFull(t *testing.T) {
	pod := func(name string, at time.Duration) cluster.Pod {
		return cluster.Pod{Name: name, Image: name, Arrival: at, RunTime: time.Minute, RestartPolicy: v1.RestartPolicyNever}
	}
	cfg := one(6*time.Hour, pod("a", 0), pod("b", time.Hour), pod("c", 2*time.Hour))
	cfg.Nodes[0].Capacity.Disk = 10 * gib
	cfg.Images = map[string]int64{"a": 3 * gib, "b": 3 * gib, "c": 3 * gib}
	cfg.Kubelet.Eviction.Thresholds = []eviction.Threshold{}
	got := history(t, cfg, cluster.ImageRemoved)
	assert.Contains(t, got, "/n unpulled a", "the least recently used one")
	assert.NotContains(t, got, "unpulled b")

	cfg.Kubelet.ImageGC.Rank = func(a, b *imagegc.Record) (int, string) { return -strings.Compare(a.Image.ID, b.Image.ID), "last name" }
	cfg.Duration = 4 * time.Hour
	assert.Contains(t, history(t, cfg, cluster.ImageRemoved), "unpulled c", "by another rank")

	cfg.Kubelet.Eviction.Thresholds = []eviction.Threshold{{Signal: eviction.NodeFSAvailable, Value: eviction.Value{Percentage: 0.15}}}
	cfg.Kubelet.ImageGC.Rank = nil
	got = history(t, cfg, cluster.ImageRemoved, cluster.NodeConditions, cluster.PodEvicted)
	assert.Contains(t, got, "DiskPressure")
	assert.Contains(t, got, "unpulled b", "the eviction manager removes all unused ones")
	assert.NotContains(t, got, "evicted")
}

func TestAPullFailsOnAFullDisk(t *testing.T) {
	cfg := one(10*time.Minute,
		cluster.Pod{Name: "a", Image: "a"},
		cluster.Pod{Name: "fills", Disk: cluster.Constant(9 * gib), RunTime: 45 * time.Second, RestartPolicy: v1.RestartPolicyNever},
	)
	cfg.Nodes[0].Capacity.Disk = 10 * gib
	cfg.Images = map[string]int64{"a": 2 * gib}
	cfg.Kubelet.PullBandwidth = gib
	cfg.Kubelet.Period = time.Second
	cfg.Kubelet.Eviction.Thresholds = []eviction.Threshold{}
	assert.Equal(t, `2s /n nopull a
14s /n nopull a
36s /n nopull a
1m18s /n pulled a`, history(t, cfg, cluster.ImagePulled, cluster.ImagePullFailed))
}

func TestPodsAreEvictedByTheRealPolicy(t *testing.T) {
	soft := []eviction.Threshold{{Signal: eviction.MemoryAvailable, Value: eviction.Value{Percentage: 0.5}, GracePeriod: 5 * time.Minute}}
	leak := cluster.Pod{Name: "leak", Requests: cluster.Resources{Memory: gib}, Memory: cluster.Growing(gib, 6*gib), StopTime: 20 * time.Second}
	calm := cluster.Pod{Name: "calm", Requests: cluster.Resources{Memory: 2 * gib}, Memory: cluster.Constant(gib)}
	cfg := one(2*time.Hour, leak, calm)
	cfg.Kubelet.Eviction.Thresholds = soft
	cfg.Kubelet.Eviction.MaxPodGracePeriod = 60
	var times []time.Duration
	cfg.Hooks.Event = func(e cluster.Event) {
		switch e.Kind {
		case cluster.NodeConditions, cluster.PodEvicted, cluster.PodTerminated:
			times = append(times, e.At)
		}
	}
	report := run(t, cfg)
	require.Len(t, times, 4, "pressure, eviction, termination, no pressure")
	assert.InDelta(t, 30*time.Minute, times[0], float64(11*time.Second), "half of the memory is in use")
	assert.InDelta(t, 5*time.Minute, times[1]-times[0], float64(11*time.Second), "the grace period of the threshold")
	assert.Equal(t, 20*time.Second, times[2]-times[1], "the pod takes its time to stop")
	assert.InDelta(t, 5*time.Minute, times[3]-times[1], float64(11*time.Second), "the transition period")
	assert.Equal(t, "leak", report.Pods[0].Name)
	assert.Equal(t, "Evicted", report.Pods[0].Reason)
	assert.Equal(t, "memory.available", report.Pods[0].Signal)
	assert.Equal(t, report.Pods[0].Ran, report.Pods[0].Lost+20*time.Second)
	assert.Equal(t, 1, report.Nodes[0].Evictions)
	assert.InDelta(t, 10*time.Minute, report.Nodes[0].Pressure, float64(time.Minute))
	assert.Equal(t, v1.PodRunning, report.Pods[1].Phase)

	cfg.Hooks.Event = nil
	cfg.Kubelet.Eviction.Thresholds[0].GracePeriod = 0
	cfg.Kubelet.Eviction.Rank = func(_ eviction.Signal, a, b *eviction.Candidate) (int, string) {
		return strings.Compare(a.Pod.Name, b.Pod.Name), "name"
	}
	report = run(t, cfg)
	assert.Equal(t, "Evicted", report.Pods[1].Reason, "another rank evicts another pod first")
	assert.Less(t, report.Pods[1].Finished, report.Pods[0].Finished)
}

func TestAPodThatExceedsItsStorageLimitIsEvicted(t *testing.T) {
	cfg := one(time.Hour, cluster.Pod{Name: "a", Limits: cluster.Resources{Disk: gib}, Disk: cluster.Growing(0, 4*gib), Recreate: true})
	report := run(t, cfg)
	require.Len(t, report.Pods, 4)
	assert.Equal(t, "ephemeralpodfs.limit", report.Pods[0].Signal)
	assert.InDelta(t, 15*time.Minute, report.Pods[0].Finished, float64(11*time.Second))
	assert.Equal(t, "a.1", report.Pods[1].Name)
}

func TestContainersAreKilledForLackOfMemory(t *testing.T) {
	limited := run(t, one(time.Hour, cluster.Pod{Limits: cluster.Resources{Memory: gib}, Memory: cluster.Growing(0, 4*gib)}))
	assert.Equal(t, 3, limited.Pods[0].OOMKills)
	assert.EqualValues(t, gib, limited.Pods[0].PeakMemory)
	assert.Equal(t, limited.Pods[0].Restarts, limited.Pods[0].OOMKills)

	cfg := one(3*time.Hour,
		cluster.Pod{Name: "guaranteed", Limits: cluster.Resources{CPU: 1000, Memory: 6 * gib}, Memory: cluster.Constant(5 * gib)},
		cluster.Pod{Name: "burstable", Requests: cluster.Resources{Memory: 4 * gib}, Memory: cluster.Constant(4 * gib)},
		cluster.Pod{Name: "besteffort", Arrival: time.Hour, Memory: cluster.Constant(2 * gib), RestartPolicy: v1.RestartPolicyNever},
	)
	cfg.Kubelet.Eviction.Thresholds = []eviction.Threshold{}
	assert.Equal(t, "besteffort/n oomkilled node", strings.SplitN(history(t, cfg, cluster.OOMKilled), " ", 2)[1])
}

func TestPodsArePlacedWhereTheyMayRun(t *testing.T) {
	nodes := []cluster.Node{
		{Name: "/full", Capacity: cluster.Resources{CPU: 1000, Memory: gib}},
		{Name: "/tainted", Capacity: cluster.Resources{CPU: 8000, Memory: 8 * gib}, Taints: []v1.Taint{{Key: "gpu", Effect: v1.TaintEffectNoSchedule}}},
		{Name: "/ssd", Capacity: cluster.Resources{CPU: 4000, Memory: 4 * gib}, Labels: map[string]string{"disk": "ssd"}},
	}
	request := cluster.Resources{CPU: 600, Memory: 512 * mib}
	affinity := &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "disk", Operator: v1.NodeSelectorOpDoesNotExist}}}}}
	cfg := cluster.Config{Nodes: nodes, Duration: time.Hour, Pods: []cluster.Pod{
		{Name: "least", Requests: request},
		{Name: "selects", Requests: request, NodeSelector: map[string]string{"disk": "ssd"}},
		{Name: "tolerates", Requests: cluster.Resources{CPU: 7000}, Tolerations: []v1.Toleration{{Key: "gpu", Operator: v1.TolerationOpExists}}},
		{Name: "affine", Requests: request, NodeAffinity: affinity, RunTime: time.Minute, RestartPolicy: v1.RestartPolicyNever},
		{Name: "waits", Arrival: time.Second, Requests: request, NodeAffinity: affinity},
		{Name: "never", Requests: cluster.Resources{CPU: 9000}},
	}}
	assert.Equal(t, `0s least/ssd scheduled
0s selects/ssd scheduled
0s tolerates/tainted scheduled
0s affine/full scheduled
1m0s waits/full scheduled`, history(t, cfg, cluster.PodScheduled))

	cfg.Pods = cfg.Pods[:1]
	cfg.Policies.Filter = func(p *cluster.Pod, n *cluster.NodeInfo) bool { return n.Name != "/ssd" }
	assert.Equal(t, "0s least/full scheduled", history(t, cfg, cluster.PodScheduled))
	cfg.Policies = cluster.Policies{Score: func(p *cluster.Pod, n *cluster.NodeInfo) int64 { return -n.Allocatable.CPU }}
	assert.Equal(t, "0s least/full scheduled", history(t, cfg, cluster.PodScheduled), "by another score")
}

func TestTheQueueIsOrderedByPriority(t *testing.T) {
	pod := func(name string, at time.Duration, priority int32) cluster.Pod {
		return cluster.Pod{Name: name, Arrival: at, Priority: priority, RunTime: time.Minute, RestartPolicy: v1.RestartPolicyNever}
	}
	cfg := one(time.Hour, pod("first", 0, 0), pod("low", time.Second, 0), pod("high", 2*time.Second, 9), pod("low2", 3*time.Second, 0))
	cfg.Nodes[0].MaxPods = 1
	assert.Equal(t, `0s first/n scheduled
1m0s high/n scheduled
2m0s low/n scheduled
3m0s low2/n scheduled`, history(t, cfg, cluster.PodScheduled))
}

func TestANodeUnderPressureGetsNoBestEffortPods(t *testing.T) {
	cfg := one(time.Hour,
		cluster.Pod{Name: "fills", Requests: cluster.Resources{Memory: gib}, Memory: cluster.Constant(8 * gib), Priority: 2_000_000_000, RunTime: 20 * time.Minute, RestartPolicy: v1.RestartPolicyNever},
		cluster.Pod{Name: "besteffort", Arrival: time.Minute},
		cluster.Pod{Name: "burstable", Arrival: time.Minute, Requests: cluster.Resources{Memory: mib}},
	)
	cfg.Kubelet.Eviction.Thresholds = []eviction.Threshold{{Signal: eviction.MemoryAvailable, Value: eviction.Value{Percentage: 0.5}, GracePeriod: time.Hour}}
	report := run(t, cfg)
	assert.Equal(t, time.Minute, report.Pods[2].Scheduled)
	assert.InDelta(t, 25*time.Minute, report.Pods[1].Scheduled, float64(15*time.Second), "after the transition period")
}

func TestErrorsNameTheField(t *testing.T) {
	node := cluster.Node{Name: "n", Capacity: cluster.Resources{Memory: gib}}
	valid := func() cluster.Config {
		return cluster.Config{Nodes: []cluster.Node{node}, Duration: time.Hour, Pods: []cluster.Pod{{Name: "p"}}}
	}
	_, err := cluster.New(valid())
	require.NoError(t, err)
	for want, change := range map[string]func(*cluster.Config){
		"Config.Nodes is empty":              func(c *cluster.Config) { c.Nodes = nil },
		"Config.Duration 0s is not positive": func(c *cluster.Config) { c.Duration = 0 },
		"negative Interval":                  func(c *cluster.Config) { c.Interval = -1 },
		"node n: name is not unique":         func(c *cluster.Config) { c.Nodes = append(c.Nodes, node) },
		"pod p: name is not unique":          func(c *cluster.Config) { c.Pods = append(c.Pods, c.Pods[0]) },
		"node n: negative amount":            func(c *cluster.Config) { c.Nodes[0].Capacity.CPU = -1 },
		"node n: the Reserved":               func(c *cluster.Config) { c.Nodes[0].Reserved.Memory = 2 * gib },
		"node n: negative MaxPods":           func(c *cluster.Config) { c.Nodes[0].MaxPods = -1 },
		"pod p: amount in":                   func(c *cluster.Config) { c.Pods[0].Requests.Memory = 1 << 51 },
		"pod p: the Requests":                func(c *cluster.Config) { c.Pods[0].Requests.CPU, c.Pods[0].Limits.CPU = 2, 1 },
		"pod p: negative Arrival":            func(c *cluster.Config) { c.Pods[0].Arrival = -1 },
		`pod p: unknown RestartPolicy "x"`:   func(c *cluster.Config) { c.Pods[0].RestartPolicy = "x" },
		"pod p: NodeAffinity": func(c *cluster.Config) {
			c.Pods[0].NodeAffinity = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "k", Operator: "?"}}}}}
		},
		"image i: invalid size -1":  func(c *cluster.Config) { c.Images = map[string]int64{"i": -1} },
		"Kubelet.Eviction":          func(c *cluster.Config) { c.Kubelet.Eviction.MaxVictims = -1 },
		"Kubelet.ImageGC: imagegc:": func(c *cluster.Config) { c.Kubelet.ImageGC.HighPercent = new(int32(200)) },
	} {
		cfg := valid()
		change(&cfg)
		_, err := cluster.New(cfg)
		assert.ErrorContains(t, err, want)
	}
}

func TestEachLineOfAnErrorNamesThePod(t *testing.T) {
	_, err := cluster.New(one(time.Hour, cluster.Pod{Name: "p", Arrival: -1, RestartPolicy: "x"}))
	assert.EqualError(t, err, `cluster: pod p: negative Arrival -1ns; unknown RestartPolicy "x"`)
}

// Pods are told apart by their names, and a trace may have one that is called like the
// replacement of another.
func TestAReplacementHasANameOfItsOwn(t *testing.T) {
	cfg := one(time.Hour,
		cluster.Pod{Name: "web", RunTime: time.Minute, ExitCode: 1, RestartPolicy: v1.RestartPolicyNever, Recreate: true},
		cluster.Pod{Name: "web.1"})
	c, err := cluster.New(cfg)
	require.NoError(t, err)
	report, err := c.Run(t.Context())
	require.NoError(t, err)
	names := map[string]bool{}
	for _, p := range report.Pods {
		assert.False(t, names[p.Name], p.Name)
		names[p.Name] = true
	}
	assert.True(t, names["web.2"])
}

func TestRunEndsWithItsContext(t *testing.T) {
	cfg := one(1000 * time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	cfg.Hooks.Sample = func(s cluster.Sample) {
		if s.At == time.Hour {
			cancel()
		}
	}
	c, err := cluster.New(cfg)
	require.NoError(t, err)
	report, err := c.Run(ctx)
	require.ErrorIs(t, err, context.Canceled)
	assert.GreaterOrEqual(t, report.Duration, time.Hour)
	assert.Less(t, report.Duration, 10*time.Hour)
	_, err = c.Run(t.Context())
	assert.EqualError(t, err, "cluster: Cluster.Run was called before")
}
