package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// suite runs the tests and returns their results. A failed test is not an error.
func (w *world) suite(ctx context.Context, o options, say func(string, ...any)) ([]result, error) {
	logs := o.logs
	if logs == "" {
		logs = w.dir
	}
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(logs, "suite.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	leave := excluded()
	if o.all {
		leave = nil
	}
	skip := patterns(leave)
	if o.skip != "" {
		skip = append(skip, o.skip)
	}
	args := []string{"run", "--no-color", "--procs=" + strconv.Itoa(o.procs), "--timeout=3h", "--focus=" + o.focus, "--json-report=report.json", "--output-dir=" + logs}
	if len(skip) > 0 {
		args = append(args, "--skip="+strings.Join(skip, "|"))
	}
	args = append(args, filepath.Join(o.tools, suiteName), "--", "--kubeconfig="+w.control.Kubeconfig, "--provider=skeleton", "--num-nodes=1")
	cmd := exec.CommandContext(ctx, filepath.Join(o.tools, ginkgoName), args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	done := new(dots)
	cmd.Stdout = io.MultiWriter(log, done)
	cmd.Stderr = cmd.Stdout
	cmd.Dir = w.dir
	say("running the tests that match %s; the log is %s", o.focus, log.Name())
	stop := every(time.Minute, func() { say("%d tests have finished", done.n.Load()) })
	err = cmd.Run()
	stop()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		return nil, err
	}
	data, readErr := os.ReadFile(filepath.Join(logs, "report.json"))
	if readErr != nil {
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("run the suite: %w: %s", readErr, text[max(0, len(text)-2000):])
	}
	return parse(data, leave)
}

// dots counts finished tests: ginkgo prints a dot for each.
type dots struct{ n atomic.Int64 }

func (d *dots) Write(p []byte) (int, error) {
	d.n.Add(int64(bytes.Count(p, []byte("•"))))
	return len(p), nil
}

// every calls f periodically until stop is called.
func every(period time.Duration, f func()) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(period)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				f()
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

// parse reads ginkgo's report.
func parse(data []byte, excluded []exclusion) ([]result, error) {
	var reports []struct {
		SpecReports []struct {
			ContainerHierarchyTexts []string
			LeafNodeText            string
			LeafNodeType            string
			State                   string
			RunTime                 time.Duration
			Failure                 struct{ Message string }
		}
	}
	if err := json.Unmarshal(data, &reports); err != nil {
		return nil, fmt.Errorf("read the suite's report: %w", err)
	}
	var results []result
	for _, report := range reports {
		for _, spec := range report.SpecReports {
			r := result{name: strings.Join(append(spec.ContainerHierarchyTexts, spec.LeafNodeText), " "), took: spec.RunTime, why: firstLine(spec.Failure.Message)}
			switch {
			case spec.LeafNodeType != "It":
				if spec.State == "passed" {
					continue
				}
				r.name, r.is = "["+spec.LeafNodeType+"] "+r.name, failed
			case spec.State == "passed":
				r.is = passed
			case spec.State == "skipped" && r.why != "":
				r.is = skipped // by the test itself
			case spec.State == "skipped" || spec.State == "pending":
				by := find(excluded, r.name)
				if by == nil {
					continue // does not match
				}
				r.is, r.why = excludedState, by.why
			default:
				r.is, r.why = failed, cmp.Or(r.why, spec.State)
			}
			results = append(results, r)
		}
	}
	return results, nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
