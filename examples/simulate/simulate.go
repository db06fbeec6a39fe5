package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/sim"
	"github.com/kubeparts/kubeparts/sim/timeline"
	"github.com/kubeparts/kubeparts/status"
)

// listed is how many lines of the list are shown without --all.
const listed = 40

// An outcome is what a simulation came to.
type outcome struct {
	line    timeline.Timeline
	pods    []string // a line on each
	took    time.Duration
	remarks []string
	broken  bool // a law was
}

// simulate runs what o says, and writes it to w. It reports whether a law was
// broken.
func simulate(ctx context.Context, o options, w io.Writer) (broken bool, err error) {
	run := ofSeed
	if o.manifest != "" {
		run = ofManifest
	}
	out, err := run(ctx, o)
	if err != nil {
		return false, err
	}
	if err := out.line.WriteChart(w, o.width); err != nil {
		return false, err
	}
	if err := writeList(w, out.line, o.all); err != nil {
		return false, err
	}
	fmt.Fprintf(w, "\n%v of virtual time\n", out.took.Round(time.Second))
	for _, line := range append(out.pods, out.remarks...) {
		fmt.Fprintln(w, line)
	}
	if o.svg == "" {
		return out.broken, nil
	}
	var picture bytes.Buffer
	if err := out.line.WriteSVG(&picture); err != nil {
		return false, err
	}
	return out.broken, os.WriteFile(o.svg, picture.Bytes(), 0o644)
}

// writeList writes what happened, or the beginning of it.
func writeList(w io.Writer, line timeline.Timeline, all bool) error {
	var b strings.Builder
	if err := line.WriteList(&b); err != nil {
		return err
	}
	lines := strings.SplitAfter(b.String(), "\n")
	more := ""
	if over := len(lines) - 1 - listed; over > 1 && !all {
		lines, more = lines[:listed], fmt.Sprintf("… and %d lines more: --all\n", over)
	}
	_, err := fmt.Fprintf(w, "\n%s%s", strings.Join(lines, ""), more)
	return err
}

// ofSeed runs what the seed draws, or a schedule.
func ofSeed(ctx context.Context, o options) (outcome, error) {
	cfg := sim.Config{Seed: o.seed, Options: sim.Options{Pods: o.pods, Duration: o.length, NoFaults: o.calm, NoKills: o.calm}}
	if o.schedule != "" {
		text, err := read(o.schedule)
		if err != nil {
			return outcome{}, err
		}
		if cfg.Schedule, err = sim.Parse(text); err != nil {
			return outcome{}, fmt.Errorf("%s: %w", o.schedule, err)
		}
	}
	report, err := sim.Run(ctx, cfg)
	if err != nil {
		return outcome{}, err
	}
	out := outcome{line: report.Timeline(), took: report.Took, broken: len(report.Violations) > 0}
	last := map[string]*v1.PodStatus{}
	for _, e := range report.Trace {
		if e.Kind == sim.Said {
			last[string(e.UID)] = e.Status
		}
	}
	for _, e := range report.Trace {
		if s := last[string(e.UID)]; s != nil {
			out.pods = append(out.pods, fmt.Sprintf("  %-12s %s", e.UID, status.Summary(s)))
			delete(last, string(e.UID))
		}
	}
	out.remarks = append(out.remarks, fmt.Sprintf("seed %d: %d steps, %d agents, %d laws, %d broken",
		o.seed, len(report.Schedule), report.Agents, len(sim.Laws()), len(report.Violations)))
	for _, v := range report.Violations {
		out.remarks = append(out.remarks, "  "+v.String())
	}
	return out, nil
}

// ofManifest runs one pod on a node that nothing else happens to.
func ofManifest(ctx context.Context, o options) (outcome, error) {
	text, err := read(o.manifest)
	if err != nil {
		return outcome{}, err
	}
	pod, err := podsource.Static([]byte(text), "node-1", o.manifest)
	if err != nil {
		return outcome{}, fmt.Errorf("%s: %w", o.manifest, err)
	}
	rt := &runtimetest.Runtime{Backoff: 10 * time.Second} // the kubelet's
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range list {
			if err := behave(rt, c.Image); err != nil {
				return outcome{}, fmt.Errorf("%s: container %s: %w", o.manifest, c.Name, err)
			}
		}
	}
	seen := new(timeline.Recorder)
	source := new(podsource.Memory)
	node, err := sim.NewNode(sim.NodeConfig{
		Runtime: rt, Sink: seen, Sources: map[string]podsource.PodSource{podsource.FileSource: source},
	})
	if err != nil {
		return outcome{}, err
	}
	begun := time.Now()
	source.Set(pod)
	ctx, cancel := context.WithTimeout(ctx, o.length)
	defer cancel()
	if err := node.Run(ctx); err != nil {
		return outcome{}, err
	}
	out := outcome{line: seen.Timeline(), took: time.Since(begun)}
	out.line.From = begun
	if s, ok := node.Status(pod.UID); ok {
		out.pods = append(out.pods, fmt.Sprintf("  %-12s %s", pod.Name, status.Summary(&s)))
	}
	return out, nil
}

// behave lets containers of an image do what its tag says.
func behave(rt *runtimetest.Runtime, image string) error {
	if !strings.HasPrefix(image, "sim.test/does:") {
		return nil
	}
	does, err := sim.ParseBehaviour(image)
	if err != nil {
		return err
	}
	b := runtimetest.Behaviour{
		StartDelay: does.StartDelay, StopDelay: does.StopDelay, Stubborn: does.Stubborn, ReadyAfter: does.ReadyAfter,
	}
	if does.Exits {
		b.Exit = &runtimetest.Exit{After: does.ExitAfter, Code: does.Code}
		if does.OOM {
			b.Exit.Reason = "OOMKilled"
		}
	}
	rt.Behave(image, b)
	return nil
}
