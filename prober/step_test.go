package prober_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/prober"
)

// all are the kinds of probes.
var all = []prober.Kind{prober.Startup, prober.Readiness, prober.Liveness}

// shape formats the result of a step as one line.
func shape(s prober.State, a prober.Actions) string {
	id, phase, result, known, _ := s.Shape()
	changed, begin, end := a.Flags()
	line := id + " " + phase
	if known {
		line += " " + result
	}
	for _, each := range []struct {
		is   bool
		word string
	}{{changed, "changed"}, {begin, "begin"}, {end, "end"}} {
		if each.is {
			line += " " + each.word
		}
	}
	return line
}

func TestFactsOfAWorker(t *testing.T) {
	const no, yes = false, true
	runs := prober.Saw("1")
	with := func(finished, deleting, running, final, started bool) prober.Facts {
		return runs.With(func(f, d, r, fi, s *bool) { *f, *d, *r, *fi, *s = finished, deleting, running, final, started })
	}
	fresh := prober.State{}
	at := prober.NewState
	for _, tc := range []struct {
		name                         string
		from                         prober.State
		facts                        prober.Facts
		startup, readiness, liveness string
	}{
		{"nothing known (prober-11, prober-13)", fresh, prober.Facts{}, " idle", " idle", " idle"},
		{"it was removed for an unknown reason", at(prober.Probing, "1"), prober.Facts{}, "1 idle unknown", "1 idle unknown", "1 idle unknown"},
		{"pod finished (prober-12)", at(prober.Probing, "1"), with(yes, no, yes, no, yes), "1 ended end", "1 ended end", "1 ended end"},
		{"finished before seen (prober-12)", fresh, with(yes, no, yes, no, yes), " ended end", " ended end", " ended end"},
		{"first instance (prober-14)", fresh, runs, "1 probing unknown changed begin", "1 probing failure changed begin", "1 probing success changed begin"},
		{"another instance (prober-14)", at(prober.Probing, "0"), runs, "1 probing unknown changed begin", "1 probing failure changed begin", "1 probing success changed begin"},
		{"another instance ends the hold (prober-14)", at(prober.Decided, "0"), runs, "1 probing unknown changed begin", "1 probing failure changed begin", "1 probing success changed begin"},
		{"another instance after the end", at(prober.Ended, "0"), runs, "1 probing unknown changed begin", "1 probing failure changed begin", "1 probing success changed begin"},
		{"on hold (prober-15)", at(prober.Decided, "1"), runs, "1 decided unknown", "1 decided unknown", "1 decided unknown"},
		{"on hold, and exited (prober-15 comes before prober-16)", at(prober.Decided, "1"), with(no, no, no, yes, yes), "1 decided unknown", "1 decided unknown", "1 decided unknown"},
		{"not running (prober-16)", at(prober.Probing, "1"), with(no, no, no, no, yes), "1 idle failure changed", "1 idle failure changed", "1 idle failure changed"},
		{"first seen when not running (prober-14, prober-16)", fresh, with(no, no, no, no, yes), "1 idle failure changed", "1 idle failure changed", "1 idle failure changed"},
		{"exited for good (prober-16, prober-17)", at(prober.Probing, "1"), with(no, no, no, yes, yes), "1 ended changed end", "1 ended changed end", "1 ended changed end"},
		{"deleted (prober-18)", at(prober.Probing, "1"), with(no, yes, yes, no, yes), "1 ended changed end", "1 probing unknown", "1 ended changed end"},
		{"deleted, and over (prober-18)", at(prober.Ended, "1"), with(no, yes, yes, no, yes), "1 ended unknown", "1 ended unknown", "1 ended unknown"},
		{"not started (prober-20)", fresh, with(no, no, yes, no, no), "1 probing unknown changed begin", "1 idle failure changed", "1 idle success changed"},
		{"started now (prober-20)", at(prober.Idle, "1"), runs, "1 probing unknown begin", "1 probing unknown begin", "1 probing unknown begin"},
		{"nothing new", at(prober.Probing, "1"), runs, "1 probing unknown", "1 probing unknown", "1 probing unknown"},
		{"passed in an earlier life (prober-70)", fresh, runs.Before(), "1 decided success changed", "1 probing success changed begin", "1 probing success changed begin"},
		{"passed in an earlier life, exited since", fresh, with(no, no, no, no, yes).Before(), "1 decided success changed", "1 idle failure changed", "1 idle failure changed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for i, want := range []string{tc.startup, tc.readiness, tc.liveness} {
				assert.Equal(t, want, shape(tc.from.Observe(all[i], tc.facts)), "%v", all[i])
			}
		})
	}
}

func TestStepAfterRuns(t *testing.T) {
	for _, tc := range []struct {
		name   string
		kind   prober.Kind
		timing prober.Timing
		runs   string // s and f
		want   []string
	}{
		{
			"it fails at the threshold (prober-22, prober-23, prober-24)", prober.Readiness, prober.Timing{SuccessThreshold: 1, FailureThreshold: 3}, "sffff",
			[]string{"success changed", "success", "success", "failure changed", "failure"},
		}, {
			"a success in between starts the count over (prober-22)", prober.Readiness, prober.Timing{SuccessThreshold: 1, FailureThreshold: 2}, "sfsff",
			[]string{"success changed", "success", "success", "success", "failure changed"},
		}, {
			"it succeeds at the threshold (prober-23)", prober.Readiness, prober.Timing{SuccessThreshold: 2, FailureThreshold: 1}, "sfss",
			[]string{"failure", "failure", "failure", "success changed"},
		}, {
			"a failed liveness holds (prober-25)", prober.Liveness, prober.Timing{SuccessThreshold: 1, FailureThreshold: 2}, "sffs",
			[]string{"success", "success", "failure changed decided", "failure decided"},
		}, {
			"a startup holds when it has succeeded (prober-25)", prober.Startup, prober.Timing{SuccessThreshold: 1, FailureThreshold: 3}, "ffsf",
			[]string{"unknown", "unknown", "success changed decided", "success decided"},
		}, {
			"a startup holds when it has failed (prober-25)", prober.Startup, prober.Timing{SuccessThreshold: 1, FailureThreshold: 2}, "ffs",
			[]string{"unknown", "failure changed decided", "failure decided"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, _ := prober.State{}.Observe(tc.kind, prober.Saw("1"))
			var got []string
			for _, r := range tc.runs {
				next, a := s.Evaluate(tc.kind, tc.timing, "1", r == 's')
				s = next
				_, phase, result, _, alike := s.Shape()
				if changed, _, _ := a.Flags(); changed {
					result += " changed"
				}
				if phase == "decided" {
					result += " decided"
					assert.Zero(t, alike, "prober-25")
				}
				got = append(got, result)
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

// A model is a worker as the rules describe it, independent of the implementation: it
// records all events of an instance, and searches them.
type model struct {
	kind   prober.Kind
	timing prober.Timing
	id     string
	runs   []bool // on this instance, since it last started to run
	held   bool
	result string // "": none
	over   bool
}

func (m *model) see(id string, running, final, deleting, started bool) {
	if id == "" || m.over && id == m.id {
		return
	}
	if id != m.id {
		m.id, m.runs, m.held, m.over = id, nil, false, false
		m.result = map[prober.Kind]string{prober.Startup: "unknown", prober.Readiness: "failure", prober.Liveness: "success"}[m.kind]
	}
	switch {
	case m.held:
	case !running:
		m.result, m.runs = "failure", nil
		if final {
			m.result, m.over = "", true
		}
	case deleting && m.kind != prober.Readiness:
		m.result, m.over = "", true
	}
}

func (m *model) ran(success bool) {
	m.runs = append(m.runs, success)
	need := m.timing.FailureThreshold
	if success {
		need = m.timing.SuccessThreshold
	}
	if len(m.runs) < need {
		return
	}
	for _, r := range m.runs[len(m.runs)-need:] {
		if r != success {
			return
		}
	}
	m.result = "failure"
	if success {
		m.result = "success"
	}
	m.held = m.kind == prober.Startup || m.kind == prober.Liveness && !success
}

// FuzzStep checks the step of a worker against the model, and against the invariants:
// a suspended probe never runs, a result changes only after its threshold, no result
// is of a removed instance.
func FuzzStep(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 30 {
		script := make([]byte, 60)
		for i := range script {
			script[i] = byte(r.Uint32())
		}
		f.Add(script, byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()))
	}
	f.Fuzz(func(t *testing.T, script []byte, kind, successes, failures byte) {
		k := all[int(kind)%3]
		timing := prober.Timing{SuccessThreshold: 1 + int(successes)%3, FailureThreshold: 1 + int(failures)%4}
		m := &model{kind: k, timing: timing}
		s := prober.State{}
		instance := 0
		for i, b := range script {
			if b&1 == 0 { // it observes
				if b&0x0e == 0 {
					instance++
				}
				id := fmt.Sprint(instance)
				if b&0xf0 == 0x10 {
					id = ""
				}
				running, final, deleting, started := b&0x30 != 0x30, b&0xc0 == 0xc0, b&0xc2 == 0x42, b&0x84 != 0x84
				facts := prober.Facts{}
				if id != "" {
					facts = prober.Saw(id).With(func(_, d, r, fi, st *bool) { *d, *r, *fi, *st = deleting, running, final && !running, started })
				}
				s, _ = s.Observe(k, facts)
				m.see(id, running, final && !running, deleting, started)
			} else if _, phase, _, _, _ := s.Shape(); phase == "probing" { // it is run
				require.False(t, m.held || m.over, "step %d: it is on hold, or over, and would be run", i)
				id := fmt.Sprint(instance)
				if b&0x1e == 0x1e {
					id = "another"
				}
				was := s
				s, _ = s.Evaluate(k, timing, id, b&2 == 0)
				if have, _, _, _, _ := was.Shape(); have != id {
					require.Equal(t, was, s, "step %d: a result for an instance that is gone", i)
				} else {
					m.ran(b&2 == 0)
				}
			} else {
				was := s
				s, _ = s.Evaluate(k, timing, fmt.Sprint(instance), b&2 == 0)
				require.Equal(t, was, s, "step %d: a result that comes too late", i)
			}
			id, phase, result, known, _ := s.Shape()
			if !known {
				result = ""
			}
			require.Equal(t, m.result, result, "step %d, byte %#x", i, b)
			if known {
				require.Equal(t, m.id, id)
			}
			require.Equal(t, m.held, phase == "decided", "step %d", i)
		}
	})
}

func TestTimingOfAProbe(t *testing.T) { // the API's defaults
	got := prober.TimingOf(&v1.Probe{})
	assert.Equal(t, prober.Timing{Period: 10e9, Timeout: 1e9, SuccessThreshold: 1, FailureThreshold: 3}, got)
	got = prober.TimingOf(&v1.Probe{InitialDelaySeconds: 1, PeriodSeconds: 2, TimeoutSeconds: 3, SuccessThreshold: 4, FailureThreshold: 5})
	assert.Equal(t, prober.Timing{InitialDelay: 1e9, Period: 2e9, Timeout: 3e9, SuccessThreshold: 4, FailureThreshold: 5}, got)
	got = prober.TimingOf(&v1.Probe{InitialDelaySeconds: -1, PeriodSeconds: -2, TimeoutSeconds: -3, SuccessThreshold: -4, FailureThreshold: -5})
	assert.Equal(t, prober.Timing{Period: 10e9, Timeout: 1e9, SuccessThreshold: 1, FailureThreshold: 3}, got, "nonsense")
}
