package study

import (
	"fmt"
	"slices"
	"time"
)

// A Summary is what the runs of one policy have in one value.
type Summary struct {
	Policy, Value string

	Total, Min, Median, Max int64
	Mean                    string // with three decimals

	// Lower, Equal and Higher count the seeds with which the value was lower than, equal to
	// or higher than with the first policy.
	Lower, Equal, Higher int
}

// Summaries returns the summaries by value, each in the order of policies.
func (r *Report) Summaries() []Summary {
	out := make([]Summary, 0, len(r.Spec.Values)*len(r.Spec.Policies))
	for v, value := range r.Spec.Values {
		first := r.numbers(0, v)
		for p, policy := range r.Spec.Policies {
			numbers, s := r.numbers(p, v), Summary{Policy: policy, Value: value}
			for seed, n := range numbers {
				s.Total += n
				switch {
				case n < first[seed]:
					s.Lower++
				case n > first[seed]:
					s.Higher++
				default:
					s.Equal++
				}
			}
			slices.Sort(numbers)
			s.Min, s.Median, s.Max = numbers[0], numbers[len(numbers)/2], numbers[len(numbers)-1]
			s.Mean = mean(s.Total, int64(len(numbers)))
			out = append(out, s)
		}
	}
	return out
}

// numbers returns a value of the runs of a policy, by seed.
func (r *Report) numbers(policy, value int) []int64 {
	out := make([]int64, 0, r.Spec.Seeds)
	for i := policy; i < len(r.Results); i += len(r.Spec.Policies) {
		out = append(out, r.Results[i].Values[value])
	}
	return out
}

// mean formats total/n with three decimals, rounded toward zero.
func mean(total, n int64) string {
	whole, rest := total/n, total%n
	sign := ""
	if total < 0 {
		sign, whole, rest = "-", -whole, -rest
	}
	return fmt.Sprintf("%s%d.%03d", sign, whole, rest*1000/n)
}

// sums returns a series, summed over the runs of a policy.
func (r *Report) sums(policy, series int) []int64 {
	sums := make([]int64, len(r.Results[0].Series[series]))
	for i := policy; i < len(r.Results); i += len(r.Spec.Policies) {
		for at, n := range r.Results[i].Series[series] {
			sums[at] += n
		}
	}
	return sums
}

// at returns the time of an index of a series.
func (r *Report) at(i int) time.Duration { return time.Duration(i) * r.Spec.Interval }
