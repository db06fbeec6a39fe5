package runtimetest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// A verdict is the result of one check.
type verdict int

const (
	kept verdict = iota
	broken
	gap
	notApplicable
)

func (k *run) judge(name string, v verdict) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.verdicts == nil {
		k.verdicts = map[verdict][]string{}
	}
	k.verdicts[v] = append(k.verdicts[v], name)
}

// summary returns the number of checks per verdict. Checks excluded by -run have none.
func (k *run) summary() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var b strings.Builder
	count := func(v verdict) int { return len(k.verdicts[v]) }
	checked := count(kept) + count(broken) + count(gap) + count(notApplicable)
	fmt.Fprintf(&b, "runtimetest: %d of %d promises checked: %d kept, %d broken, %d known gaps, %d not applicable",
		checked, k.total, count(kept), count(broken), count(gap), count(notApplicable))
	for _, name := range k.verdicts[broken] {
		fmt.Fprintf(&b, "\n\tbroken: %s", name)
	}
	for _, name := range k.verdicts[gap] {
		fmt.Fprintf(&b, "\n\tknown gap: %s: %s", name, k.suite.Gaps[name])
	}
	return b.String()
}

func (t *trial) verdict(outer *testing.T) verdict {
	switch {
	case outer.Failed():
		return broken
	case t.isGap:
		return gap
	case t.notApplicable:
		return notApplicable
	default:
		return kept
	}
}

// judgeGap evaluates a check with a known gap.
func (t *trial) judgeGap() {
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

func (t *trial) Errorf(format string, args ...any) {
	t.T.Helper()
	if t.gap == "" {
		t.T.Errorf(format, args...)
		return
	}
	t.recordFailure(fmt.Sprintf(format, args...))
}

func (t *trial) Error(args ...any) {
	t.T.Helper()
	t.Errorf("%s", strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
}

func (t *trial) Fatalf(format string, args ...any) {
	t.T.Helper()
	if t.gap == "" {
		t.T.Fatalf(format, args...)
	}
	t.recordFailure(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (t *trial) Fatal(args ...any) {
	t.T.Helper()
	t.Fatalf("%s", strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
}

// Skipf ends a check that turned out not to be applicable.
func (t *trial) Skipf(format string, args ...any) {
	t.T.Helper()
	t.notApplicable = true
	if t.gap == "" {
		t.T.Skipf(format, args...)
	}
	runtime.Goexit()
}

func (t *trial) recordFailure(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = append(t.failures, what)
}
