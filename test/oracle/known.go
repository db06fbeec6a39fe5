package oracle

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// expectation is the prefix of the comment of a scenario that names the invariants that Kubernetes' kubelet violates.
const expectation = "# Kubelet v1.37.2 violates "

// expected returns the invariants that Kubernetes' kubelet violates in a scenario, of
// which one must be found; empty if its text does not name any.
func expected(text string) []string {
	for line := range strings.Lines(text) {
		if list, ok := strings.CutPrefix(line, expectation); ok {
			return strings.Split(strings.TrimRight(list, ".\n"), ", ")
		}
	}
	return nil
}

// A known is a scenario of knownCommand.
type known struct {
	name     string
	scenario Scenario
	expected []string
}

// unexpected returns why a result is not the expected one; empty if it is. ours is true for this repository's kubelet.
func (k known) unexpected(ours bool, violations []Violation, err error) string {
	found := names(violations)
	switch {
	case err != nil:
		return err.Error()
	case ours && len(found) > 0:
		return "violates " + strings.Join(found, ", ")
	case !ours && !slices.ContainsFunc(found, func(name string) bool { return slices.Contains(k.expected, name) }):
		return fmt.Sprintf("does not violate %s, but %v", strings.Join(k.expected, " or "), found)
	}
	return ""
}

// knownCommand plays scenarios on two kubelets: Kubernetes' must violate an invariant
// that the scenario names, and this repository's none.
func knownCommand(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("known", flag.ContinueOnError)
	var o playOptions
	o.flags(fs)
	ours := fs.String("ours", "", "`file` of the kubelet of this repository: go build ./examples/kubelet")
	lanes := fs.Int("lanes", 4, "`number` of kubelets at the same time")
	n := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") })
	if n < 0 {
		n = len(args)
	}
	files, err := parse(fs, args, max(n, 1), out)
	if err != nil {
		return err
	}
	if *ours == "" {
		return errors.New("known requires --ours")
	}
	theirs := o
	o.kubelet = *ours
	if err := errors.Join(theirs.complete(), o.complete()); err != nil {
		return err
	}
	var list []known
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		k := known{name: filepath.Base(file), expected: expected(string(text))}
		if k.scenario, err = ParseScenario(string(text)); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if len(k.expected) == 0 {
			return fmt.Errorf("%s: no line %q", file, expectation)
		}
		list = append(list, k)
	}
	var mu sync.Mutex // guards failed and out
	failed := false
	slots := make(chan struct{}, max(*lanes, 1))
	var wg sync.WaitGroup
	for _, k := range list {
		for _, options := range []playOptions{theirs, o} {
			wg.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				var violations []Violation
				run, err := playIsolated(ctx, k.scenario, options)
				if err == nil {
					violations, err = check(run)
				}
				why := k.unexpected(options.kubelet == o.kubelet, violations, err)
				mu.Lock()
				defer mu.Unlock()
				failed = failed || why != ""
				if why == "" {
					why = "as expected"
				}
				fmt.Fprintf(out, "%s, %s: %s\n", k.name, filepath.Base(options.kubelet), why)
				for _, v := range violations {
					fmt.Fprintf(out, "  %s\n", v)
				}
			})
		}
	}
	wg.Wait()
	if failed {
		return ErrViolated
	}
	return ctx.Err()
}
