package study

import (
	"fmt"
	"io"
	"strings"

	"github.com/kubeparts/kubeparts/sim/timeline"
)

// WriteBars writes an SVG image that compares the policies: for each value, a bar with the mean
// of each policy and a line from its lowest to its highest seed. The title has the totals.
func (r *Report) WriteBars(w io.Writer) error {
	groups := make([]timeline.BarGroup, len(r.Spec.Values))
	for i, s := range r.Summaries() {
		g := &groups[i/len(r.Spec.Policies)]
		g.Title = s.Value
		seeds := int64(r.Spec.Seeds) // all lengths are multiplied by it, so that the mean is exact
		g.Bars = append(g.Bars, timeline.Bar{
			Name: s.Policy, Value: s.Total, Low: s.Min * seeds, High: s.Max * seeds,
			Label: fmt.Sprintf("%s, total %d", s.Mean, s.Total),
		})
	}
	return timeline.WriteBars(w, r.title(), groups)
}

// WritePlots writes an SVG image with a diagram for each series: a line for each policy, summed
// over the seeds, with its last number. The title has the totals.
func (r *Report) WritePlots(w io.Writer) error {
	plots := make([]timeline.Plot, len(r.Spec.Series))
	for i, name := range r.Spec.Series {
		plots[i].Title = name
		for p, policy := range r.Spec.Policies {
			var line timeline.Line
			sums := r.sums(p, i)
			for at, n := range sums {
				line.Points = append(line.Points, timeline.Point{At: r.at(at), Value: n})
			}
			line.Name = policy
			if n := len(sums); n > 0 {
				line.Name = fmt.Sprintf("%s: %d", policy, sums[n-1])
			}
			plots[i].Lines = append(plots[i].Lines, line)
		}
	}
	return timeline.WritePlots(w, r.title()+"; lines are sums of all seeds", r.at(max(r.points()-1, 0)), plots)
}

// points returns the length of each series.
func (r *Report) points() int {
	if len(r.Spec.Series) == 0 {
		return 0
	}
	return len(r.Results[0].Series[0])
}

// title returns the size of the study and the totals of its first value.
func (r *Report) title() string {
	title := fmt.Sprintf("%s: %d policies, %d seeds", r.Spec.Name, len(r.Spec.Policies), r.Spec.Seeds)
	var totals []string
	for _, s := range r.Summaries()[:min(len(r.Spec.Values), 1)*len(r.Spec.Policies)] {
		totals = append(totals, fmt.Sprintf("%s %d", s.Policy, s.Total))
	}
	if len(totals) > 0 {
		title += fmt.Sprintf("; %s: %s", r.Spec.Values[0], strings.Join(totals, ", "))
	}
	return title
}
