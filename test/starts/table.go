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
	Took    time.Duration // until all pods were reported
	Used    cost
	Figures map[string][]float64 // by name
}

// A cost is what a program has used. The CPU time of one without a process of its own, and the requests of one
// without an API server, are zero.
type cost struct {
	CPU                   time.Duration
	CRICalls, APIRequests int
}

func (u cost) minus(o cost) cost {
	return cost{u.CPU - o.CPU, u.CRICalls - o.CRICalls, u.APIRequests - o.APIRequests}
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
		perPod := func(title, format string, of func(u cost) float64) {
			row(title, func(r result) string {
				if of(r.Used) == 0 {
					return "–"
				}
				return fmt.Sprintf(format, of(r.Used)/float64(r.Pods))
			})
		}
		perPod("CPU per pod", "%.1f ms", func(u cost) float64 { return 1000 * u.CPU.Seconds() })
		perPod("CRI calls per pod", "%.1f", func(u cost) float64 { return float64(u.CRICalls) })
		perPod("API requests per pod", "%.1f", func(u cost) float64 { return float64(u.APIRequests) })
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
