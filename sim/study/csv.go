package study

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// WriteRuns writes a CSV file with a header and a row for each run: its policy, its seed and
// its values.
func (r *Report) WriteRuns(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write(slices.Concat([]string{"policy", "seed"}, r.Spec.Values)) // Flush reports the error
	for i := range r.Results {
		run := r.Spec.run(i)
		row := []string{run.Policy, strconv.FormatUint(run.Seed, 10)}
		for _, n := range r.Results[i].Values {
			row = append(row, strconv.FormatInt(n, 10))
		}
		_ = out.Write(row)
	}
	out.Flush()
	return out.Error()
}

// WriteSummary writes a CSV file with a header and a row for each value and policy, as in
// [Summary].
func (r *Report) WriteSummary(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"value", "policy", "total", "mean", "min", "median", "max", "seeds_lower", "seeds_equal", "seeds_higher"})
	for _, s := range r.Summaries() {
		row := []string{s.Value, s.Policy, strconv.FormatInt(s.Total, 10), s.Mean}
		for _, n := range []int64{s.Min, s.Median, s.Max, int64(s.Lower), int64(s.Equal), int64(s.Higher)} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		_ = out.Write(row)
	}
	out.Flush()
	return out.Error()
}

// WriteSeries writes a CSV file with a header and a row for each policy and time: the sums of
// the series over the seeds.
func (r *Report) WriteSeries(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write(slices.Concat([]string{"policy", "time_s"}, r.Spec.Series))
	for p, policy := range r.Spec.Policies {
		columns := make([][]int64, len(r.Spec.Series))
		for i := range columns {
			columns[i] = r.sums(p, i)
		}
		for i := range r.points() {
			at := r.at(i)
			row := []string{policy, fmt.Sprintf("%d.%03d", at.Milliseconds()/1000, at.Milliseconds()%1000)}
			for _, column := range columns {
				row = append(row, strconv.FormatInt(column[i], 10))
			}
			_ = out.Write(row)
		}
	}
	out.Flush()
	return out.Error()
}
