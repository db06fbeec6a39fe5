package sim

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Bounds of the work that Check does after a failed run.
const (
	shrinkTries  = 1000             // runs to shrink a schedule
	shrinkTime   = 30 * time.Second // real time for all of them
	traceContext = 25               // entries printed before the violation
)

// Check runs one simulation in a new synctest bubble and fails t if an invariant was
// violated. The failure contains the seed, the description of the invariant, the
// smallest schedule that still violates it, and the trace before the violation. Check
// returns the report of the run.
func Check(t *testing.T, cfg Config) *Report {
	t.Helper()
	report, err := bubble(t, cfg)
	if err != nil {
		t.Errorf("sim: seed %d: %v", cfg.Seed, err)
		return report
	}
	if len(report.Violations) > 0 {
		t.Error(explain(t, cfg, report))
	}
	return report
}

// bubble is Run in virtual time.
func bubble(t *testing.T, cfg Config) (report *Report, err error) {
	synctest.Test(t, func(t *testing.T) { report, err = Run(t.Context(), cfg) })
	return report, err
}

// explain shrinks the schedule of a run that violated an invariant, and returns the
// text of the failure.
func explain(t *testing.T, cfg Config, report *Report) string {
	first := report.Violations[0]
	deadline := time.Now().Add(shrinkTime)
	least := Shrink(report.Schedule, shrinkTries, func(s Schedule) bool {
		if time.Now().After(deadline) {
			return false
		}
		c := cfg
		c.Schedule, c.OnEntry = append(Schedule{}, s...), nil // a nil Schedule would be drawn
		tried, err := bubble(t, c)
		if err != nil {
			return false
		}
		for _, v := range tried.Violations {
			if v.Invariant == first.Invariant {
				report, first = tried, v
				return true
			}
		}
		return false
	})
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d violated invariant %s", cfg.Seed, first.Invariant)
	for _, inv := range Invariants() {
		if inv.Name == first.Invariant {
			if inv.Rules != "" {
				fmt.Fprintf(&b, " (%s)", inv.Rules)
			}
			fmt.Fprintf(&b, ": %s", inv.Description)
		}
	}
	fmt.Fprintf(&b, "\n%s\n\nSmallest schedule that violates it:\n\n%s\nIts trace up to the violation:\n\n", first, least)
	end := len(report.Trace)
	for i, e := range report.Trace {
		if e.Kind == InvariantViolated && e.Violation.Invariant == first.Invariant {
			end = i + 1
			break
		}
	}
	begin := max(0, end-traceContext)
	if begin > 0 {
		fmt.Fprintf(&b, "… %d earlier entries\n", begin)
	}
	for _, e := range report.Trace[begin:end] {
		fmt.Fprintln(&b, e)
	}
	if cfg.Machine != nil {
		fmt.Fprintf(&b, "\nTo repeat the run, pass this schedule to Parse, and run it with seed %d and the same Machine.\n", cfg.Seed)
		return b.String()
	}
	fmt.Fprintf(&b, "\nTo repeat the run, write the schedule to a file:\n\n\tgo test ./sim -run TestReplay -seed %d -schedule FILE\n\tgo run ./examples/simulate -seed %d -schedule FILE\n", cfg.Seed, cfg.Seed)
	return b.String()
}
