package cluster

import (
	"fmt"
	"io"
	"slices"

	"github.com/kubeparts/kubeparts/sim/timeline"
)

// WriteSVG writes an SVG image of the samples: memory, disk, pods, evictions and OOM kills
// over time. Its title has the totals. A simulation without disks has no diagram of them.
func (r *Report) WriteSVG(w io.Writer) error {
	line := func(name string, value func(*Sample) int64) timeline.Line {
		l := timeline.Line{Name: name, Points: make([]timeline.Point, len(r.Samples))}
		for i := range r.Samples {
			l.Points[i] = timeline.Point{At: r.Samples[i].At, Value: max(value(&r.Samples[i]), 0)}
		}
		return l
	}
	plots := []timeline.Plot{
		{Title: "Memory", Label: gibibytes, Lines: []timeline.Line{
			line("used", func(s *Sample) int64 { return s.Used.Memory }),
			line("capacity", func(s *Sample) int64 { return s.Capacity.Memory }),
			line("requested", func(s *Sample) int64 { return s.Requested.Memory }),
		}},
		{Title: diskTitle, Label: gibibytes, Lines: []timeline.Line{
			line("used", func(s *Sample) int64 { return s.Used.Disk }),
			line("capacity", func(s *Sample) int64 { return s.Capacity.Disk }),
			line("requested", func(s *Sample) int64 { return s.Requested.Disk }),
		}},
		{Title: "Pods", Lines: []timeline.Line{
			line("running", func(s *Sample) int64 { return int64(s.Running) }),
			line("pending", func(s *Sample) int64 { return int64(s.Pending) }),
			line("waiting for an image or a restart", func(s *Sample) int64 { return int64(s.Starting + s.Restarting) }),
		}},
		{Title: "Since the start", Lines: []timeline.Line{
			line("evictions", func(s *Sample) int64 { return int64(s.Evictions) }),
			line("OOM kills", func(s *Sample) int64 { return int64(s.OOMKills) }),
		}},
		{Title: "Nodes under pressure", Max: int64(len(r.Nodes)), Lines: []timeline.Line{
			line("nodes", func(s *Sample) int64 { return int64(s.PressuredNodes) }),
		}},
	}
	plots = slices.DeleteFunc(plots, func(p timeline.Plot) bool { return p.Title == diskTitle && isEmpty(p) })
	return timeline.WritePlots(w, r.title(), r.Duration, plots)
}

const diskTitle = "Disk"

// isEmpty reports whether all values of a plot are 0.
func isEmpty(p timeline.Plot) bool {
	return !slices.ContainsFunc(p.Lines, func(l timeline.Line) bool {
		return slices.ContainsFunc(l.Points, func(p timeline.Point) bool { return p.Value != 0 })
	})
}

// title returns the size of the simulation and the totals at its end.
func (r *Report) title() string {
	var end Sample
	if n := len(r.Samples); n > 0 {
		end = r.Samples[n-1]
	}
	return fmt.Sprintf("%d nodes, %d pods, %v: %d succeeded, %d failed, %d evictions, %d OOM kills, %d restarts",
		len(r.Nodes), len(r.Pods), r.Duration, end.Succeeded, end.Failed, end.Evictions, end.OOMKills, end.Restarts)
}

// gibibytes formats an amount with one decimal.
func gibibytes(n int64) string { return fmt.Sprintf("%d.%d GiB", n>>30, (n>>20&1023)*10/1024) }
