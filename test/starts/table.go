//go:build unix

package starts

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A result is what one program needed in one phase. It can be encoded as JSON.
type result struct {
	Phase   string
	Pods    int
	Took    time.Duration        // until all pods were reported
	CPU     time.Duration        // of the program; zero: it has no process of its own
	Calls   int                  // of the runtime, all of them
	Figures map[string][]float64 // by name
}

// newResult computes the figures of pods.
func newResult(phase string, pods []milestones) result {
	r := result{Phase: phase, Pods: len(pods), Figures: map[string][]float64{}}
	for _, f := range figures {
		for _, m := range pods {
			if v, ok := f.of(m); ok {
				r.Figures[f.name] = append(r.Figures[f.name], v)
			}
		}
	}
	return r
}

// tables returns a table for each phase, with a column for each program.
func tables(names []string, results map[string][]result) string {
	var b strings.Builder
	for i, first := range results[names[0]] {
		fmt.Fprintf(&b, "\n| %s: %d pods; median (minimum to maximum; p99) |", first.Phase, first.Pods)
		for _, name := range names {
			fmt.Fprintf(&b, " %s |", name)
		}
		b.WriteString("\n|---|" + strings.Repeat("---|", len(names)) + "\n")
		row := func(title string, cell func(r result) string) {
			fmt.Fprintf(&b, "| %s |", title)
			for _, name := range names {
				fmt.Fprintf(&b, " %s |", cell(results[name][i]))
			}
			b.WriteString("\n")
		}
		for _, f := range figures {
			row(f.name, func(r result) string { return spread(f.format, r.Figures[f.name]) })
		}
		row("all pods", func(r result) string { return fmt.Sprintf("%.2f s", r.Took.Seconds()) })
		row("CPU per pod", func(r result) string {
			if r.CPU == 0 {
				return "–"
			}
			return fmt.Sprintf("%.1f ms", 1000*r.CPU.Seconds()/float64(r.Pods))
		})
		row("CRI calls per pod", func(r result) string { return fmt.Sprintf("%.1f", float64(r.Calls)/float64(r.Pods)) })
	}
	return b.String()
}

// spread returns the median of values, with their minimum, maximum and 99th percentile.
func spread(format string, values []float64) string {
	if len(values) == 0 {
		return "–"
	}
	sorted := slices.Sorted(slices.Values(values))
	at := func(q float64) float64 { return sorted[int(q*float64(len(sorted)-1))] }
	number, _, _ := strings.Cut(format, " ")
	return fmt.Sprintf(format+" ("+number+" to "+number+"; "+number+")", at(0.5), sorted[0], at(1), at(0.99))
}
