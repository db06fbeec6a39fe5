// Policy compares rankings of pods for eviction, the kubelet's and one by age, on a simulated
// cluster of 100 nodes on which 10,000 pods live for a day:
//
//	go run ./examples/policy
//	go run ./examples/policy --nodes 10 --pods 1000 --seed 2 --out results
//
// With --out, it writes the history of every pod as a CSV file and a chart of the cluster as
// an SVG image for each ranking. To evaluate another ranking, add it to rankings.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/sim/cluster"
)

// rankings are the compared rankings. If rank is nil, the kubelet's is used.
var rankings = []struct {
	name string
	rank func(s eviction.Signal, a, b *eviction.Candidate) (order int, reason string)
}{
	{name: "kubelet"},
	// Among the pods that exceed their requests and have the lowest priority, the
	// youngest is evicted and not the one with the largest excess: it has done least work.
	{name: "youngest", rank: func(_ eviction.Signal, a, b *eviction.Candidate) (int, string) {
		switch {
		case a.Excess > 0 && b.Excess <= 0:
			return -1, "usage above request"
		case a.Excess <= 0 && b.Excess > 0:
			return 1, "usage above request"
		}
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), b.Created.Compare(a.Created)), "least work lost"
	}},
}

// workload returns pods of which some leak memory and some have bursts, on nodes whose memory
// they request.
func workload(seed uint64, nodes, pods int) cluster.Config {
	rng := rand.New(rand.NewPCG(seed, 1))
	percent := func(n, from, to int64) int64 { return n * (from + rng.Int64N(to-from)) / 100 }
	cfg := cluster.Config{
		Seed: seed, Duration: 24 * time.Hour,
		Nodes: slices.Repeat([]cluster.Node{{Capacity: cluster.Resources{Memory: 52 << 30}}}, nodes),
	}
	cfg.Kubelet.Eviction.Thresholds = []eviction.Threshold{{Signal: eviction.MemoryAvailable, Value: eviction.Value{Percentage: 0.05}}}
	for range pods {
		request := (128 + rng.Int64N(640)) << 20
		pod := cluster.Pod{
			Arrival:  time.Duration(rng.Int64N(int64(time.Hour))),
			Requests: cluster.Resources{Memory: request}, Memory: cluster.Constant(percent(request, 40, 90)),
			Priority: int32(rng.IntN(4)/3) * 1000, Recreate: true,
		}
		cycle := time.Duration(20+rng.IntN(100)) * time.Minute
		switch rng.IntN(5) {
		case 0:
			pod.Memory = cluster.Growing(pod.Memory(0), percent(request, 10, 50))
		case 1:
			pod.Memory = cluster.Sum(pod.Memory, cluster.Bursts(percent(request, 50, 200), cycle/10, cycle))
		}
		cfg.Pods = append(cfg.Pods, pod)
	}
	return cfg
}

func main() {
	seed := flag.Uint64("seed", 1, "`number` that the pods are drawn from")
	nodes := flag.Int("nodes", 100, "`number` of nodes")
	pods := flag.Int("pods", 10_000, "`number` of pods")
	out := flag.String("out", "", "existing `directory` for CSV files and SVG images; empty: none")
	flag.Parse()
	progress := func(s cluster.Sample) {
		if s.At%(6*time.Hour) == 0 {
			fmt.Fprintln(os.Stderr, s)
		}
	}
	if err := study(context.Background(), workload(*seed, *nodes, *pods), os.Stdout, *out, progress); err != nil {
		fmt.Fprintln(os.Stderr, "policy:", err)
		os.Exit(1)
	}
}

// study simulates the cluster with each ranking and writes a table of the results.
func study(ctx context.Context, cfg cluster.Config, out io.Writer, dir string, progress func(cluster.Sample)) error {
	fmt.Fprintf(out, "%d pods on %d nodes for %v; less is better\n\n", len(cfg.Pods), len(cfg.Nodes), cfg.Duration)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "ranking\tpods evicted\tof high priority\thours of work lost\tOOM kills\t")
	for _, r := range rankings {
		cfg.Kubelet.Eviction.Rank, cfg.Hooks.Sample = r.rank, progress
		c, err := cluster.New(cfg)
		if err != nil {
			return err
		}
		report, err := c.Run(ctx)
		if err != nil {
			return err
		}
		var evicted, important, kills int
		var lost time.Duration
		for _, p := range report.Pods {
			kills, lost = kills+p.OOMKills, lost+p.Lost
			if p.Reason == "Evicted" {
				evicted++
				important += min(int(p.Priority), 1)
			}
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t\n", r.name, evicted, important, lost/time.Hour, kills)
		if dir != "" {
			if err := errors.Join(writeFile(dir, r.name+".csv", report.WritePods), writeFile(dir, r.name+".svg", report.WriteSVG)); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}

func writeFile(dir, name string, write func(io.Writer) error) error {
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
