package runtimetest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// A verdict is what became of one check.
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

// summary counts the verdicts. Checks that -run left out have none.
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

// judgeGap says what became of a check of a promise that is known not to be
// kept.
func (t *trial) judgeGap() {
	switch {
	case len(t.seen) > 0:
		t.isGap = true
		t.T.Logf("a known gap: %s\nseen: %s", t.gap, strings.Join(t.seen, "\n"))
	case !t.notApplicable:
		t.T.Errorf("Suite.Gaps says that the promise is not kept (%s), but it is: take it out", t.gap)
	}
}

// The methods of testing.T which end or fail a check. With a gap declared they
// write down what was seen, and leave the test alone.

func (t *trial) Errorf(format string, args ...any) {
	t.T.Helper()
	if t.gap == "" {
		t.T.Errorf(format, args...)
		return
	}
	t.saw(fmt.Sprintf(format, args...))
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
	t.saw(fmt.Sprintf(format, args...))
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

func (t *trial) saw(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen = append(t.seen, what)
}
