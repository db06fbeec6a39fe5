package study_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim/study"
)

// draws is a study whose results differ by policy and seed.
func draws(seeds int) study.Spec {
	return study.Spec{
		Name: "draws", Settings: "size=3", Policies: []string{"first", "second"}, FirstSeed: 7, Seeds: seeds,
		Values: []string{"delta", "count"}, Series: []string{"count"}, Interval: time.Minute,
	}
}

func draw(_ context.Context, r study.Run) (study.Result, error) {
	h := sha256.Sum256(fmt.Append(nil, r.Policy, r.Seed))
	series := []int64{0, int64(h[0]), int64(h[0]) + int64(h[1])}
	return study.Result{Values: []int64{int64(h[2]) - 128, series[2]}, Series: [][]int64{series}}, nil
}

func shares(t testing.TB, s study.Spec, of int) (parts []*study.Part) {
	t.Helper()
	for i := range of {
		p, err := s.Part(t.Context(), i, of, draw)
		require.NoError(t, err)
		parts = append(parts, p)
	}
	return parts
}

// files returns everything that can be written of a report.
func files(t testing.TB, r *study.Report) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, errors.Join(r.WriteRuns(&b), r.WriteSummary(&b), r.WriteSeries(&b), r.WriteBars(&b), r.WritePlots(&b)))
	return b.String()
}

func TestTheNumberOfSharesMakesNoDifference(t *testing.T) {
	hashes := map[string][]int{}
	for _, of := range []int{1, 2, 3, 10, 99, 100} {
		parts := shares(t, draws(50), of)
		slices.Reverse(parts)
		var log bytes.Buffer
		for _, p := range parts {
			require.NoError(t, p.Write(&log))
		}
		assert.Equal(t, of, strings.Count(log.String(), "\n"), "a part is a line")
		read, err := study.ReadParts(&log)
		require.NoError(t, err)
		report, err := study.Merge(read)
		require.NoError(t, err)
		require.Len(t, report.Results, 100)
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(files(t, report))))
		hashes[sum] = append(hashes[sum], of)
	}
	assert.Len(t, hashes, 1, "%v", hashes)
}

func TestEachRunIsInOneShare(t *testing.T) {
	s := draws(50)
	whole, err := s.Runs(0, 1)
	require.NoError(t, err)
	assert.Equal(t, []study.Run{{"first", 7}, {"second", 7}, {"first", 8}}, whole[:3])
	for of := 1; of <= 100; of++ {
		var all []study.Run
		for i := range of {
			runs, err := s.Runs(i, of)
			require.NoError(t, err)
			assert.LessOrEqual(t, len(runs), 100/of+1)
			all = append(all, runs...)
		}
		require.Equal(t, whole, all, "%d shares", of)
	}
}

func TestPartsThatDoNotFitAreRefused(t *testing.T) {
	other := func(change func(*study.Part)) *study.Part {
		p := *shares(t, draws(5), 4)[1]
		change(&p)
		return &p
	}
	parts := shares(t, draws(5), 4)
	for want, parts := range map[string][]*study.Part{
		"study: no parts": nil,
		"study: merge draws: part 1 of 4 is missing\npart 3 of 4 is missing": {parts[0], parts[2]},
		"study: merge draws: part 2 of 4 occurs more than once":              {parts[0], parts[2], parts[1], parts[2], parts[3]},
		`part 1 of 4 is of another study than part 0 of 4: Name "x", not "d`: {parts[0], other(func(p *study.Part) { p.Spec.Name = "x" })},
		`Settings "size=4", not "size=3"`:                                    {parts[0], other(func(p *study.Part) { p.Spec.Settings = "size=4" })},
		`Policies "[first third]", not "[first second]"`:                     {parts[0], other(func(p *study.Part) { p.Spec.Policies = []string{"first", "third"} })},
		`part 1 of 5 is of another study than part 0 of 4: 5 shares, not 4`:  {parts[0], shares(t, draws(5), 5)[1]},
		`study: part 1 of 4: 4 results of 3 runs`:                            {other(func(p *study.Part) { p.Results = append(p.Results, p.Results[0]) })},
		`study: part 4 of 4: share 4 is not from 0 to 3`:                     {other(func(p *study.Part) { p.Share = 4 })},
		`study: part 1 of -1: -1 shares of 10 runs`:                          {other(func(p *study.Part) { p.Shares = -1 })},
		`policy first, seed 8: 1 values and 1 series, not 2 and 1`:           {other(func(p *study.Part) { p.Results = slices.Clone(p.Results); p.Results[0].Values = []int64{1} })},
		`policy second, seed 8: series count has 1 numbers, not 3`:           {other(func(p *study.Part) { p.Results = slices.Clone(p.Results); p.Results[1].Series = [][]int64{{1}} })},
		`policy second, seed 8: series count has the negative number -1`:     {other(func(p *study.Part) { p.Results = slices.Clone(p.Results); p.Results[1].Series = [][]int64{{1, 1, -1}} })},
		`study: part 0 of 1: policy first, seed 8: series count has 1 numbers, not 3`: {parts[0], other(func(p *study.Part) {
			p.Results = slices.Repeat([]study.Result{{Values: []int64{1, 2}, Series: [][]int64{{1}}}}, 3)
		}), parts[2], parts[3]},
	} {
		_, err := study.Merge(parts)
		assert.ErrorContains(t, err, want)
	}
}

func TestInvalidSpecsAreErrors(t *testing.T) {
	s := study.Spec{Policies: []string{"a", "a"}, Seeds: -1, Values: []string{""}, Interval: time.Second}
	_, err := s.Runs(0, 1)
	for _, want := range []string{"Spec.Name is empty", "Spec.Seeds -1", `Spec.Policies ["a" "a"]`, `Spec.Values [""]`, "Spec.Interval 1s does not fit 0 Series"} {
		assert.ErrorContains(t, err, want)
	}
	s = draws(1 << 20)
	_, err = s.Runs(0, 1)
	assert.ErrorContains(t, err, "more than 1048576 runs")
	s = draws(5)
	_, err = s.Runs(10, 10)
	assert.ErrorContains(t, err, "share 10 is not from 0 to 9")
	_, err = s.Runs(0, 11)
	assert.ErrorContains(t, err, "11 shares of 10 runs")
	_, err = s.Part(t.Context(), 3, 10, func(context.Context, study.Run) (study.Result, error) {
		return study.Result{}, errors.New("no memory")
	})
	assert.EqualError(t, err, "study: policy second, seed 8: no memory")
	_, err = s.Part(t.Context(), 3, 10, func(context.Context, study.Run) (study.Result, error) { return study.Result{}, nil })
	assert.EqualError(t, err, "study: part 3 of 10: policy second, seed 8: 0 values and 0 series, not 2 and 1")
}

func TestSummariesCompareSeedBySeed(t *testing.T) {
	results := map[study.Run][]int64{
		{"a", 0}: {-5}, {"b", 0}: {-6},
		{"a", 1}: {1}, {"b", 1}: {1},
		{"a", 2}: {2}, {"b", 2}: {9},
		{"a", 3}: {0}, {"b", 3}: {-1},
	}
	s := study.Spec{Name: "s", Policies: []string{"a", "b"}, Seeds: 4, Values: []string{"v"}}
	part, err := s.Part(t.Context(), 0, 1, func(_ context.Context, r study.Run) (study.Result, error) {
		return study.Result{Values: results[r]}, nil
	})
	require.NoError(t, err)
	report, err := study.Merge([]*study.Part{part})
	require.NoError(t, err)
	assert.Equal(t, []study.Summary{
		{Policy: "a", Value: "v", Total: -2, Mean: "-0.500", Min: -5, Median: 1, Max: 2, Equal: 4},
		{Policy: "b", Value: "v", Total: 3, Mean: "0.750", Min: -6, Median: 1, Max: 9, Lower: 2, Equal: 1, Higher: 1},
	}, report.Summaries())
	assert.Contains(t, files(t, report), "<title>s: 2 policies, 4 seeds; v: a -2, b 3</title>")
}

func TestImagesNameThePoliciesAndTotals(t *testing.T) {
	report, err := study.Merge(shares(t, draws(3), 1))
	require.NoError(t, err)
	s := report.Summaries()[2:]
	for _, write := range []func(*bytes.Buffer) error{
		func(b *bytes.Buffer) error { return report.WriteBars(b) }, func(b *bytes.Buffer) error { return report.WritePlots(b) },
	} {
		var b bytes.Buffer
		require.NoError(t, write(&b))
		for _, sum := range s {
			assert.Contains(t, b.String(), fmt.Sprint(sum.Total))
			assert.Contains(t, b.String(), sum.Policy)
		}
	}
}
