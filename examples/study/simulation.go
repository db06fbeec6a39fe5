package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/sim"
	"github.com/kubeparts/kubeparts/sim/cluster"
	"github.com/kubeparts/kubeparts/sim/study"
	"github.com/kubeparts/kubeparts/sim/virtualtime"
)

// A simulation is a study and the function that runs it.
type simulation struct {
	study.Spec
	run func(context.Context, study.Run) (study.Result, error)
}

// spec returns the study that the options choose.
func (o *options) spec() (*simulation, error) {
	var s *simulation
	switch o.study {
	case "placement":
		s = placement(o.workload)
	case "backoff":
		s = backoff()
	default:
		return nil, fmt.Errorf("--study=%s: want placement or backoff", o.study)
	}
	s.Name, s.FirstSeed, s.Seeds = o.study, o.first, o.seeds
	return s, s.Check()
}

// A workload is the size of a simulated cluster.
type workload struct {
	nodes, pods int
	length      time.Duration
}

const defaultLength = 24 * time.Hour

// scores are the policies of the study placement: pods are spread over the nodes, as by
// kube-scheduler, or packed onto few of them.
var scores = map[string]func(*cluster.Pod, *cluster.NodeInfo) int64{
	"spread": cluster.LeastAllocated,
	"pack":   func(p *cluster.Pod, n *cluster.NodeInfo) int64 { return -cluster.LeastAllocated(p, n) },
}

// placement compares where pods are placed that use more memory than they request.
func placement(w workload) *simulation {
	s := &simulation{Spec: study.Spec{
		Settings: fmt.Sprintf("nodes=%d pods=%d for=%v", w.nodes, w.pods, w.length),
		Policies: []string{"spread", "pack"},
		Values:   []string{"pods evicted", "OOM kills", "minutes of work lost", "minutes under pressure"},
		Series:   []string{"pods evicted", "OOM kills", "nodes under pressure"}, Interval: w.length / 48,
	}}
	s.run = func(ctx context.Context, r study.Run) (study.Result, error) {
		cfg := w.config(r.Seed)
		cfg.Policies.Score, cfg.Interval = scores[r.Policy], s.Interval
		c, err := cluster.New(cfg)
		if err != nil {
			return study.Result{}, err
		}
		report, err := c.Run(ctx)
		if err != nil {
			return study.Result{}, err
		}
		series := make([][]int64, len(s.Series))
		for _, sample := range report.Samples {
			for i, n := range []int{sample.Evictions, sample.OOMKills, sample.PressuredNodes} {
				series[i] = append(series[i], int64(n))
			}
		}
		var lost, pressure time.Duration
		for _, p := range report.Pods {
			lost += p.Lost
		}
		for _, n := range report.Nodes {
			pressure += n.Pressure
		}
		last := report.Samples[len(report.Samples)-1]
		return study.Result{
			Values: []int64{int64(last.Evictions), int64(last.OOMKills), int64(lost / time.Minute), int64(pressure / time.Minute)},
			Series: series,
		}, nil
	}
	return s
}

// config returns pods of which some leak memory and some have bursts, on nodes that their requests
// fill to five sixths.
func (w workload) config(seed uint64) cluster.Config {
	rng := rand.New(rand.NewPCG(seed, 1))
	cfg := cluster.Config{Seed: seed, Duration: w.length}
	cfg.Kubelet.Eviction.Thresholds = []eviction.Threshold{{Signal: eviction.MemoryAvailable, Value: eviction.Value{Percentage: 0.05}}}
	var requested int64
	for range w.pods {
		request := (128 + rng.Int64N(640)) << 20
		requested += request
		base := cluster.Constant(request * (40 + rng.Int64N(50)) / 100)
		pod := cluster.Pod{
			Arrival:  time.Duration(rng.Int64N(int64(w.length/24) + 1)),
			Requests: cluster.Resources{Memory: request}, Memory: base, Recreate: true,
		}
		cycle := time.Duration(20+rng.IntN(100)) * time.Minute
		switch rng.IntN(5) {
		case 0:
			pod.Memory = cluster.Growing(base(0), request*(10+rng.Int64N(40))/100)
		case 1:
			pod.Memory = cluster.Sum(base, cluster.Bursts(request*(50+rng.Int64N(150))/100, cycle/10, cycle))
		}
		cfg.Pods = append(cfg.Pods, pod)
	}
	node := cluster.Node{Capacity: cluster.Resources{Memory: requested * 6 / 5 / int64(max(w.nodes, 1))}}
	cfg.Nodes = slices.Repeat([]cluster.Node{node}, max(w.nodes, 0))
	return cfg
}

// delays are the policies of the study backoff: the delay of the first restart of a container that
// failed.
var delays = map[string]time.Duration{"kubelet": 10 * time.Second, "hasty": time.Second}

// backoff compares restarts on a node with faults, of which the complete agent is run in virtual
// time.
func backoff() *simulation {
	s := &simulation{Spec: study.Spec{
		Policies: []string{"kubelet", "hasty"},
		Values:   []string{"containers started", "containers failed", "invariants violated"},
	}}
	s.run = func(ctx context.Context, r study.Run) (result study.Result, err error) {
		if err := ctx.Err(); err != nil { // the bubble cannot observe it
			return result, err
		}
		var started, failed int64
		var report *sim.Report
		err = virtualtime.Run(func(ctx context.Context) (err error) {
			report, err = sim.Run(ctx, sim.Config{
				Seed: r.Seed, Machine: sim.MemoryOf(&runtimetest.Runtime{Backoff: delays[r.Policy]}),
				OnEntry: func(e sim.Entry) {
					switch {
					case e.Kind == sim.Started:
						started++
					case e.Kind == sim.Exited && e.Container.ExitCode != 0:
						failed++
					}
				},
			})
			return err
		})
		if err != nil {
			return result, err
		}
		return study.Result{Values: []int64{started, failed, int64(len(report.Violations))}}, nil
	}
	return s
}
