package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/sim"
	"github.com/kubeparts/kubeparts/status"
)

type options struct {
	seed     uint64
	pods     int
	length   time.Duration
	calm     bool
	schedule string
	svg      string
	list     bool
}

// simulate runs a node and writes the results. It reports whether all invariants held.
func simulate(ctx context.Context, o options, out io.Writer) (ok bool, err error) {
	cfg := sim.Config{Seed: o.seed, Options: sim.Options{Pods: o.pods, Duration: o.length, NoFaults: o.calm, NoKills: o.calm}}
	if o.schedule != "" {
		text, err := os.ReadFile(o.schedule)
		if err != nil {
			return false, err
		}
		if cfg.Schedule, err = sim.Parse(string(text)); err != nil {
			return false, fmt.Errorf("%s: %w", o.schedule, err)
		}
	}
	report, err := sim.Run(ctx, cfg)
	if err != nil {
		return false, err
	}
	timeline := report.Timeline()
	if err := timeline.WriteChart(out, 120); err != nil {
		return false, err
	}
	if o.list {
		if err := timeline.WriteList(out); err != nil {
			return false, err
		}
	}
	writeSummary(out, o.seed, report)
	if o.svg != "" {
		var picture bytes.Buffer
		if err := timeline.WriteSVG(&picture); err != nil {
			return false, err
		}
		if err := os.WriteFile(o.svg, picture.Bytes(), 0o644); err != nil {
			return false, err
		}
	}
	return len(report.Violations) == 0, nil
}

// writeSummary writes the last status of each pod and the violations.
func writeSummary(out io.Writer, seed uint64, report *sim.Report) {
	fmt.Fprintf(out, "\n%v of virtual time\n", report.Duration.Round(time.Second))
	last := map[string]*v1.PodStatus{}
	var pods []string // in the order of their first status
	for _, e := range report.Trace {
		if e.Kind != sim.StatusUpdated {
			continue
		}
		if last[string(e.UID)] == nil {
			pods = append(pods, string(e.UID))
		}
		last[string(e.UID)] = e.Status
	}
	for _, uid := range pods {
		fmt.Fprintf(out, "  %-12s %s\n", uid, status.Summary(last[uid]))
	}
	fmt.Fprintf(out, "seed %d: %d steps, %d agents, %d invariants, %d violated\n",
		seed, len(report.Schedule), report.Agents, len(sim.Invariants()), len(report.Violations))
	for _, v := range report.Violations {
		fmt.Fprintln(out, " ", v)
	}
}
