package sim

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Bounds of what Check does once a run has failed.
const (
	shrinkTries = 1000             // runs to shrink a schedule
	shrinkTime  = 30 * time.Second // of real time for all of them
	aroundTrace = 25               // entries shown before the violation
)

// Check runs one simulation in a bubble of its own and fails t if a law was
// broken, saying all there is to be known: the seed, the law in words, the least
// schedule that breaks it still, and the trace around it. It returns the report
// of the run.
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

// explain shrinks the schedule of a run that broke a law, and puts it in words.
func explain(t *testing.T, cfg Config, report *Report) string {
	first := report.Violations[0]
	deadline := time.Now().Add(shrinkTime)
	least := Shrink(report.Schedule, shrinkTries, func(s Schedule) bool {
		if time.Now().After(deadline) {
			return false
		}
		c := cfg
		c.Schedule, c.Each = append(Schedule{}, s...), nil // not nil: that would be drawn
		tried, err := bubble(t, c)
		if err != nil {
			return false
		}
		for _, v := range tried.Violations {
			if v.Law == first.Law {
				report, first = tried, v
				return true
			}
		}
		return false
	})
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d broke the law %s", cfg.Seed, first.Law)
	for _, law := range Invariants() {
		if law.Name == first.Law {
			fmt.Fprintf(&b, " (%s): %s", law.Rules, law.Says)
		}
	}
	fmt.Fprintf(&b, "\n%s\n\nThe least schedule that breaks it:\n\n%s\nThe trace of it, up to there:\n\n", first, least)
	end := len(report.Trace)
	for i, e := range report.Trace {
		if e.Kind == LawBroken && e.Broken.Law == first.Law {
			end = i + 1
			break
		}
	}
	begin := max(0, end-aroundTrace)
	if begin > 0 {
		fmt.Fprintf(&b, "… %d entries before\n", begin)
	}
	for _, e := range report.Trace[begin:end] {
		fmt.Fprintln(&b, e)
	}
	if cfg.Machine != nil {
		fmt.Fprintf(&b, "\nTo run it again: this schedule, by Parse, with seed %d and the same Machine.\n", cfg.Seed)
		return b.String()
	}
	fmt.Fprintf(&b, "\nTo run it again, put the schedule into a file:\n\n\tgo test ./sim -run TestReplay -seed %d -schedule FILE\n\tgo run ./examples/simulate -seed %d -schedule FILE\n", cfg.Seed, cfg.Seed)
	return b.String()
}
