package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// A study is what came of some policies on the same nodes.
type study struct {
	title    string
	measures []string
	outcomes []outcomes
}

// outcomes are those of one policy: of each run, a figure for each measure.
type outcomes struct {
	policy string
	runs   [][]float64
}

// of returns one measure of all runs, sorted.
func (o outcomes) of(measure int) (figures []float64) {
	for _, run := range o.runs {
		figures = append(figures, run[measure])
	}
	slices.Sort(figures)
	return figures
}

// quantile returns the least figure that so much of all are not above.
func quantile(sorted []float64, q float64) float64 {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// better counts the nodes on which a policy had less of a measure than the first
// one, and those on which it had more.
func (s study) better(policy, measure int) (less, more int) {
	for i, run := range s.outcomes[policy].runs {
		switch was := s.outcomes[0].runs[i][measure]; {
		case run[measure] < was:
			less++
		case run[measure] > was:
			more++
		}
	}
	return less, more
}

// table prints the median of each measure, and where nine of ten runs are below; and
// how the policy compares with the first one node by node, which is what counts:
// nodes differ more than policies.
func (s study) table(out io.Writer) {
	fmt.Fprintf(out, "%s (%d nodes; less is better)\n\n", s.title, len(s.outcomes[0].runs))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tpolicy\tmedian\t90 %\tless than "+s.outcomes[0].policy+"\tmore\t")
	for m, measure := range s.measures {
		for p, o := range s.outcomes {
			figures := o.of(m)
			fmt.Fprintf(w, "%s\t%s\t%.1f\t%.1f\t", measure, o.policy, quantile(figures, 0.5), quantile(figures, 0.9))
			if p > 0 {
				less, more := s.better(p, m)
				fmt.Fprintf(w, "%d\t%d\t", less, more)
			}
			fmt.Fprintln(w)
			measure = ""
		}
	}
	w.Flush()
	fmt.Fprintln(out)
}
