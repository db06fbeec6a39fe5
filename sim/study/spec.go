package study

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// maxRuns bounds the runs of a study.
const maxRuns = 1 << 20

// A Spec determines the runs of a study.
type Spec struct {
	// Name of the study. It must not be empty.
	Name string `json:"name"`

	// Settings are whatever else determines the results of a run, for example the flags of
	// the program. Parts with different Settings are not merged.
	Settings string `json:"settings,omitempty"`

	// Policies are the names of the compared policies, at least one. The others are compared
	// with the first.
	Policies []string `json:"policies"`

	// The seeds are FirstSeed and those that follow, Seeds in all. Seeds must be positive.
	FirstSeed uint64 `json:"firstSeed,omitempty"`
	Seeds     int    `json:"seeds"`

	// Values are the names of the numbers that a run results in.
	Values []string `json:"values,omitempty"`

	// Series are the names of the numbers over time that a run results in: one at the start,
	// and one after each Interval. If there are any, Interval must be positive.
	Series   []string      `json:"series,omitempty"`
	Interval time.Duration `json:"interval,omitempty"`
}

// A Run is one run of a study.
type Run struct {
	Policy string
	Seed   uint64
}

// A Result is what a run results in.
type Result struct {
	// Values are in the order of Spec.Values.
	Values []int64 `json:"values,omitempty"`

	// Series are in the order of Spec.Series. All series of a study have the same length;
	// their numbers must not be negative.
	Series [][]int64 `json:"series,omitempty"`
}

// Check returns an error that names every invalid field.
func (s *Spec) Check() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("Spec."+format, args...)) }
	if s.Name == "" {
		fail("Name is empty")
	}
	if len(s.Policies) == 0 {
		fail("Policies is empty")
	}
	if s.Seeds <= 0 || s.FirstSeed+uint64(s.Seeds) < s.FirstSeed {
		fail("Seeds %d is not positive or too large", s.Seeds)
	}
	if len(s.Policies) > maxRuns || s.Seeds > maxRuns || len(s.Policies)*s.Seeds > maxRuns {
		fail("Policies and Seeds are more than %d runs", maxRuns)
	}
	if (len(s.Series) > 0) != (s.Interval > 0) {
		fail("Interval %v does not fit %d Series", s.Interval, len(s.Series))
	}
	for _, f := range []struct {
		field string
		names []string
	}{{"Policies", s.Policies}, {"Values", s.Values}, {"Series", s.Series}} {
		sorted := slices.Sorted(slices.Values(f.names))
		if slices.Contains(sorted, "") || len(slices.Compact(sorted)) < len(f.names) {
			fail("%s %q has an empty name or one twice", f.field, f.names)
		}
	}
	return errors.Join(errs...)
}

// run returns the run of an index: the policies of a seed follow each other.
func (s *Spec) run(i int) Run {
	return Run{s.Policies[i%len(s.Policies)], s.FirstSeed + uint64(i/len(s.Policies))}
}

// share returns the range of the runs of a share. Shares differ by at most one run.
func (s *Spec) share(index, of int) (from, to int) {
	runs := len(s.Policies) * s.Seeds
	return runs * index / of, runs * (index + 1) / of
}

// checkShare returns an error if there is no such share.
func (s *Spec) checkShare(index, of int) error {
	if of <= 0 || of > len(s.Policies)*s.Seeds {
		return fmt.Errorf("%d shares of %d runs", of, len(s.Policies)*s.Seeds)
	}
	if index < 0 || index >= of {
		return fmt.Errorf("share %d is not from 0 to %d", index, of-1)
	}
	return nil
}

// Runs returns the runs of a share, of the given number of shares. The first index is 0.
func (s *Spec) Runs(index, of int) ([]Run, error) {
	if err := errors.Join(s.Check(), s.checkShare(index, of)); err != nil {
		return nil, fmt.Errorf("study: %w", err)
	}
	from, to := s.share(index, of)
	runs := make([]Run, 0, to-from)
	for i := from; i < to; i++ {
		runs = append(runs, s.run(i))
	}
	return runs, nil
}

// Part calls run for each run of a share, one after the other, and returns the part of the
// study. An error names the run.
func (s Spec) Part(ctx context.Context, index, of int, run func(context.Context, Run) (Result, error)) (*Part, error) {
	runs, err := s.Runs(index, of)
	if err != nil {
		return nil, err
	}
	p := &Part{Spec: s, Share: index, Shares: of}
	for _, r := range runs {
		result, err := run(ctx, r)
		if err != nil {
			return nil, fmt.Errorf("study: policy %s, seed %d: %w", r.Policy, r.Seed, err)
		}
		p.Results = append(p.Results, result)
	}
	return p, p.check()
}
