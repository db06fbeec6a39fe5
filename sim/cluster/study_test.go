package cluster_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/sim/cluster"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// mixed returns a cluster with pods of all kinds: services that leak memory or have bursts,
// jobs that succeed, fail and crash, images, limits, disk usage, priorities.
func mixed(seed uint64, nodes, pods int, duration time.Duration) cluster.Config {
	rng := rand.New(rand.NewPCG(seed, 1))
	upTo := func(n int64) int64 { return rng.Int64N(n) }
	cfg := cluster.Config{
		Seed:     seed,
		Nodes:    slices.Repeat([]cluster.Node{{Capacity: cluster.Resources{CPU: 32000, Memory: 48 * gib, Disk: 150 * gib}, Reserved: cluster.Resources{Memory: gib, Disk: 5 * gib}}}, nodes),
		Images:   map[string]int64{},
		Duration: duration,
	}
	cfg.Kubelet.Eviction.Thresholds = []eviction.Threshold{
		{Signal: eviction.MemoryAvailable, Value: eviction.Value{Percentage: 0.05}},
		{Signal: eviction.MemoryAvailable, Value: eviction.Value{Percentage: 0.1}, GracePeriod: time.Minute},
		{Signal: eviction.NodeFSAvailable, Value: eviction.Value{Percentage: 0.1}},
		{Signal: eviction.ImageFSAvailable, Value: eviction.Value{Percentage: 0.15}},
	}
	for i := range 60 {
		cfg.Images[fmt.Sprint("image-", i)] = (50 + upTo(2000)) * mib
	}
	for range pods {
		request := (128 + upTo(640)) * mib
		base := cluster.Constant(request * (40 + upTo(50)) / 100)
		p := cluster.Pod{
			Arrival:  time.Duration(upTo(int64(time.Hour))),
			Requests: cluster.Resources{CPU: 50 + upTo(200), Memory: request, Disk: upTo(500) * mib},
			Memory:   base, Recreate: true, Image: fmt.Sprint("image-", upTo(70)),
			Priority: int32(upTo(4)/3) * 1000, StopTime: time.Duration(upTo(40)) * time.Second,
		}
		switch upTo(10) {
		case 0, 1:
			p.Memory = cluster.Growing(request/2, request*(10+upTo(40))/100)
		case 2, 3:
			cycle := time.Duration(20+upTo(100)) * time.Minute
			p.Memory = cluster.Sum(base, cluster.Bursts(request*(50+upTo(150))/100, cycle/10, cycle))
		case 4:
			p.RunTime, p.RestartPolicy = time.Duration(1+upTo(10800))*time.Second, "Never"
		case 5:
			p.RunTime, p.RestartPolicy, p.ExitCode = time.Duration(1+upTo(3600))*time.Second, "OnFailure", int32(upTo(2))
		case 6:
			p.Limits.Memory = request
			p.Memory = cluster.Growing(request/2, request/4)
		case 7:
			p.Disk = cluster.Growing(100*mib, upTo(2*gib))
			if upTo(2) == 0 {
				p.Limits.Disk = 4 * gib
			}
		case 8:
			p.Requests = cluster.Resources{} // BestEffort
		}
		cfg.Pods = append(cfg.Pods, p)
	}
	return cfg
}

func run(t testing.TB, cfg cluster.Config) *cluster.Report {
	t.Helper()
	c, err := cluster.New(cfg)
	require.NoError(t, err)
	report, err := c.Run(t.Context())
	require.NoError(t, err)
	return report
}

var scale = flag.Bool("scale", false, "whether the study has its full size: 100 nodes, 10,000 pods, 24 hours")

// The policy study that the package is made for.
func TestADayOfAClusterTakesSeconds(t *testing.T) {
	nodes, pods := 4, 400
	if *scale {
		nodes, pods = 100, 10000
	}
	began := time.Now()
	report := run(t, mixed(1, nodes, pods, 24*time.Hour))
	last := report.Samples[len(report.Samples)-1]
	t.Logf("24 h of %d pods on %d nodes in %v: %+v", pods, nodes, time.Since(began).Round(time.Millisecond), last)
	assert.Positive(t, last.Evictions)
	assert.Positive(t, last.OOMKills)
	assert.Positive(t, last.ImagesRemoved)
}
