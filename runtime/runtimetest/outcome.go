package runtimetest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// A outcome is the result of one check.
type outcome int

const (
	met outcome = iota
	violated
	gap
	notApplicable
)

func (k *run) record(name string, v outcome) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.outcomes == nil {
		k.outcomes = map[outcome][]string{}
	}
	k.outcomes[v] = append(k.outcomes[v], name)
}

// summary returns the number of checks per outcome. Checks excluded by -run have none.
func (k *run) summary() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var b strings.Builder
	count := func(v outcome) int { return len(k.outcomes[v]) }
	checked := count(met) + count(violated) + count(gap) + count(notApplicable)
	fmt.Fprintf(&b, "runtimetest: %d of %d requirements checked: %d met, %d violated, %d known gaps, %d not applicable",
		checked, k.total, count(met), count(violated), count(gap), count(notApplicable))
	for _, name := range k.outcomes[violated] {
		fmt.Fprintf(&b, "\n\tviolated: %s", name)
	}
	for _, name := range k.outcomes[gap] {
		fmt.Fprintf(&b, "\n\tknown gap: %s: %s", name, k.suite.Gaps[name])
	}
	return b.String()
}

func (t *checkT) outcome(outer *testing.T) outcome {
	switch {
	case outer.Failed():
		return violated
	case t.isGap:
		return gap
	case t.notApplicable:
		return notApplicable
	default:
		return met
	}
}

// evaluateGap evaluates a check with a known gap.
func (t *checkT) evaluateGap() {
	switch {
	case len(t.failures) > 0:
		t.isGap = true
		t.T.Logf("known gap: %s\nfailures: %s", t.gap, strings.Join(t.failures, "\n"))
	case !t.notApplicable:
		t.T.Errorf("the check passes, but is in Suite.Gaps (%s): remove it from there", t.gap)
	}
}

// The methods of testing.T that fail or end a check. With a known gap they record the
// failure and do not fail the test.

func (t *checkT) Errorf(format string, args ...any) {
	t.T.Helper()
	if t.gap == "" {
		t.T.Errorf(format, args...)
		return
	}
	t.recordFailure(fmt.Sprintf(format, args...))
}

func (t *checkT) Error(args ...any) {
	t.T.Helper()
	t.Errorf("%s", strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
}

func (t *checkT) Fatalf(format string, args ...any) {
	t.T.Helper()
	if t.gap == "" {
		t.T.Fatalf(format, args...)
	}
	t.recordFailure(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (t *checkT) Fatal(args ...any) {
	t.T.Helper()
	t.Fatalf("%s", strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
}

// Skipf ends a check that turned out not to be applicable.
func (t *checkT) Skipf(format string, args ...any) {
	t.T.Helper()
	t.notApplicable = true
	if t.gap == "" {
		t.T.Skipf(format, args...)
	}
	runtime.Goexit()
}

func (t *checkT) recordFailure(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = append(t.failures, what)
}
