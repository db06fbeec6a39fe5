package oracle

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// checkCommand checks what 'run --save' or fuzz has recorded: one recording, or all of a directory.
func checkCommand(_ context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("check", flag.ContinueOnError)
	svg := fs.String("svg", "", "`file` to draw the timeline to")
	files, err := parse(fs, args, 1, out)
	if err != nil {
		return err
	}
	if info, err := os.Stat(files[0]); err != nil {
		return err
	} else if info.IsDir() {
		return checkAll(files[0], out)
	}
	run, err := loadRecording(files[0])
	if err != nil {
		return err
	}
	return report(run, *svg, out)
}

// checkAll checks the recordings of a directory of fuzz.
func checkAll(dir string, out io.Writer) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.json.gz"))
	if err != nil {
		return err
	}
	var results []Result
	violated := false
	for _, file := range files {
		run, err := loadRecording(file)
		if err != nil {
			return err
		}
		r := Result{Kubelet: run.Kubelet, Records: len(run.Records), Stalled: newView(run.Records).stalled}
		for _, rec := range run.Records {
			r.Took = max(r.Took, rec.At.Truncate(time.Second))
		}
		s, err := ParseScenario(run.Scenario)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		r.Pods = s.Pods()
		if r.Violations, err = check(run); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, v := range r.Violations {
			violated = true
			fmt.Fprintf(out, "%s %s\n", filepath.Base(file), v)
		}
		results = append(results, r)
	}
	fmt.Fprint(out, summary(results))
	if violated {
		return ErrViolated
	}
	return nil
}

// invariantsCommand prints the invariants as a table in Markdown.
func invariantsCommand(_ context.Context, _ []string, out io.Writer) error {
	fmt.Fprint(out, "| invariant | for any kubelet | from |\n|---|---|---|\n")
	for _, inv := range Invariants() {
		fmt.Fprintf(out, "| %s | %s | %s |\n", inv.Name, inv.Description, inv.Source)
	}
	return nil
}
