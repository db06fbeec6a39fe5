package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/kubeparts/kubeparts/sim/study"
)

// runAll runs all shares on this machine, as many at once as it has CPUs.
func runAll(ctx context.Context, s *simulation, shares int) ([]*study.Part, error) {
	if shares == 1 { // the user did not divide it
		shares = min(runtime.GOMAXPROCS(0), len(s.Policies)*s.Seeds)
	}
	parts := make([]*study.Part, max(shares, 0))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range parts {
		group.Go(func() (err error) {
			parts[i], err = s.Part(ctx, i, shares, s.run)
			return err
		})
	}
	return parts, group.Wait()
}

// writeResults merges the parts, writes the summary to out and, if dir is not empty, all tables and
// charts to files in it.
func writeResults(parts []*study.Part, dir string, out io.Writer) error {
	report, err := study.Merge(parts)
	if err != nil {
		return err
	}
	if err := report.WriteSummary(out); err != nil || dir == "" {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files := map[string]func(io.Writer) error{
		"runs.csv": report.WriteRuns, "summary.csv": report.WriteSummary, "values.svg": report.WriteBars,
	}
	if len(report.Spec.Series) > 0 {
		files["series.csv"], files["series.svg"] = report.WriteSeries, report.WritePlots
	}
	for name, write := range files {
		err = errors.Join(err, writeFile(filepath.Join(dir, name), write))
	}
	return err
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
