package study_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	"github.com/kubeparts/kubeparts/sim/cluster"
	"github.com/kubeparts/kubeparts/sim/study"
)

// Are pods that leak memory better packed or spread? Two machines run a share each.
func Example() {
	scores := map[string]func(*cluster.Pod, *cluster.NodeInfo) int64{
		"spread": cluster.LeastAllocated,
		"pack":   func(p *cluster.Pod, n *cluster.NodeInfo) int64 { return -cluster.LeastAllocated(p, n) },
	}
	run := func(ctx context.Context, r study.Run) (study.Result, error) {
		c, err := cluster.New(cluster.Config{
			Seed: r.Seed, Duration: 3 * time.Hour,
			Nodes:    slices.Repeat([]cluster.Node{{Capacity: cluster.Resources{Memory: 8 << 30}}}, 3),
			Pods:     slices.Repeat([]cluster.Pod{{Requests: cluster.Resources{Memory: 1 << 30}, Memory: cluster.Growing(1<<30, int64(300+r.Seed*40)<<20)}}, 12),
			Policies: cluster.Policies{Score: scores[r.Policy]},
		})
		if err != nil {
			return study.Result{}, err
		}
		report, err := c.Run(ctx)
		if err != nil {
			return study.Result{}, err
		}
		return study.Result{Values: []int64{int64(report.Samples[len(report.Samples)-1].Evictions)}}, nil
	}

	spec := study.Spec{Name: "leaks", Policies: []string{"spread", "pack"}, Seeds: 4, Values: []string{"evictions"}}
	var log1, log2 bytes.Buffer
	for i, out := range []*bytes.Buffer{&log1, &log2} {
		part, err := spec.Part(context.Background(), i, 2, run)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(part, "has", len(part.Results), "runs")
		if err := part.Write(out); err != nil {
			log.Fatal(err)
		}
	}
	log1.ReadFrom(&log2)
	parts, err := study.ReadParts(&log1)
	if err != nil {
		log.Fatal(err)
	}
	report, err := study.Merge(parts)
	if err != nil {
		log.Fatal(err)
	}
	if err := report.WriteSummary(os.Stdout); err != nil {
		log.Fatal(err)
	}

	// Output:
	// part 0 of 2 has 4 runs
	// part 1 of 2 has 4 runs
	// value,policy,total,mean,min,median,max,seeds_lower,seeds_equal,seeds_higher
	// evictions,spread,9,2.250,0,3,3,0,4,0
	// evictions,pack,22,5.500,4,6,6,0,0,4
}
