// Package ginkgo runs compiled suites of tests that use ginkgo, and reads its reports.
package ginkgo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// A Suite is a compiled suite and how it is run.
type Suite struct {
	Program string   // of ginkgo, in the suite's version
	Binary  string   // the suite; its directory is the working directory of the tests
	Args    []string // of the suite
	Env     []string // in addition to the environment of the process
	Logs    string   // directory of the log and the report, which is created
	Timeout time.Duration

	// Command makes the command of ginkgo, such as one that runs in a machine of package isolate. If nil, it is
	// exec.CommandContext.
	Command func(ctx context.Context, name string, args ...string) *exec.Cmd

	// Printf prints the progress.
	Printf func(format string, args ...any)
}

// A Selection selects tests by name. Concurrent tests are at most Procs.
type Selection struct {
	Name   string // of this run: it names the files of Suite.Logs
	Focus  string // pattern
	Skip   []string
	Labels string // ginkgo's label filter; empty: any
	Procs  int
	Dry    bool // lists the tests instead of running them
}

// Run runs tests and returns the results. A failed test is not an error. If ctx is done, tests that
// run are interrupted, and the results of those that have finished are returned.
func (s Suite) Run(ctx context.Context, sel Selection) ([]Spec, error) {
	logs, err := filepath.Abs(s.Logs) // ginkgo's working directory is another one
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(logs, sel.Name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	report := filepath.Join(logs, sel.Name+".json")
	if err := os.RemoveAll(report); err != nil { // of an earlier run
		return nil, err
	}
	args := []string{"run", "--no-color", "--procs=" + strconv.Itoa(sel.Procs), "--seed=1", "--timeout=" + s.Timeout.String(), "--focus=" + sel.Focus,
		"--json-report=" + filepath.Base(report), "--output-dir=" + logs}
	if sel.Dry {
		args = append(args, "--dry-run")
	}
	if len(sel.Skip) > 0 {
		args = append(args, "--skip="+strings.Join(sel.Skip, "|"))
	}
	if sel.Labels != "" {
		args = append(args, "--label-filter="+sel.Labels)
	}
	command := s.Command
	if command == nil {
		command = exec.CommandContext
	}
	cmd := command(ctx, s.Program, slices.Concat(args, []string{s.Binary, "--"}, s.Args)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	done := new(dots)
	cmd.Stdout = io.MultiWriter(log, done)
	cmd.Stderr = cmd.Stdout
	cmd.Dir = filepath.Dir(s.Binary)
	cmd.Env = append(os.Environ(), s.Env...)
	s.Printf("running tests; the log is %s", log.Name())
	stop := every(time.Minute, func() { s.Printf("%d tests have finished", done.n.Load()) })
	err = cmd.Run()
	stop()
	if err != nil && ctx.Err() == nil && !errors.As(err, new(*exec.ExitError)) {
		return nil, err
	}
	specs, err := read(report)
	if err != nil {
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("run the suite: %w: %s", err, text[max(0, len(text)-2000):])
	}
	return specs, nil
}

// read returns an error for a report without tests, which a suite leaves that has not started.
func read(report string) ([]Spec, error) {
	data, err := os.ReadFile(report)
	if err != nil {
		return nil, err
	}
	specs, err := Parse(data)
	if err == nil && len(specs) == 0 {
		err = errors.New("the report is empty")
	}
	return specs, err
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

// A Spec is a test, or a node of the suite such as BeforeSuite, and its result.
type Spec struct {
	Name  string // that of a node is empty
	Node  string // "It" for a test
	State string // ginkgo's: "passed", "failed", "skipped", ...
	Why   string // first line of the message of the failure or skip; empty if the test was not selected
	Took  time.Duration

	// Container is the name of the innermost container. Its tests may depend on each other; a
	// report does not contain whether they do.
	Container string
}

// Parse reads a report. It contains all tests of the suite; those that were not selected are
// skipped without a message.
func Parse(report []byte) ([]Spec, error) {
	var suites []struct {
		SpecReports []struct {
			ContainerHierarchyTexts []string
			LeafNodeText            string
			LeafNodeType            string
			State                   string
			RunTime                 time.Duration
			Failure                 struct{ Message string }
		}
	}
	if err := json.Unmarshal(report, &suites); err != nil {
		return nil, fmt.Errorf("read the suite's report: %w", err)
	}
	var specs []Spec
	for _, suite := range suites {
		for _, s := range suite.SpecReports {
			specs = append(specs, Spec{
				Name: join(s.ContainerHierarchyTexts, s.LeafNodeText), Container: join(s.ContainerHierarchyTexts), Node: s.LeafNodeType,
				State: s.State, Took: s.RunTime, Why: firstLine(s.Failure.Message),
			})
		}
	}
	return specs, nil
}

// join returns the name of a test: ginkgo leaves out empty texts.
func join(containers []string, leaf ...string) string {
	texts := slices.DeleteFunc(slices.Concat(containers, leaf), func(text string) bool { return text == "" })
	return strings.Join(texts, " ")
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
