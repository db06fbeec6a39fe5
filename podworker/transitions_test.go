package podworker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Each input in each state: the next state, and the effects. "·" is no change; "wake",
// "cancel", a call and an outcome are effects.
const transitions = `
input            waiting                        syncing                  stopping                 terminating              cleaning                     finished
update           · wake                         · wake                   ·                        ·                        ·                            ·
create           · wake                         · wake                   · again                  · again                  · again                      · again
deleted          finished (never started)       stopping wake cancel     · wake                   · wake                   · (already stopped)          cleaning wake
deleted, sooner  finished (never started)       stopping wake cancel     · wake cancel            · wake cancel            · (already stopped)          cleaning wake
failed           finished (never started)       stopping wake cancel     · wake                   · wake                   · (already stopped)          ·
removed          finished (never started)       stopping wake cancel     · wake                   · wake                   · wake                       ·
killed           cleaning wake (never started)  stopping wake cancel     · wake                   · wake                   · (already stopped)          · (already stopped)
killed, sooner   cleaning wake (never started)  stopping wake cancel     · wake cancel            · wake cancel            · (already stopped)          · (already stopped)
its turn         syncing Sync                   · Sync                   terminating Terminate    · Terminate              · Cleanup                    ·
not its turn     ·                              · Sync                   terminating Terminate    · Terminate              · Cleanup                    ·
call failed      ·                              ·                        ·                        ·                        ·                            ·
Sync done        ·                              ·                        ·                        ·                        ·                            ·
Sync terminal    ·                              stopping wake cancel     ·                        ·                        ·                            ·
Terminate done   -                              -                        -                        cleaning wake (stopped)  -                            -
Cleanup done     -                              -                        -                        -                        finished                     -
`

func TestEveryTransition(t *testing.T) { // pw-14 … pw-18, pw-22, pw-39 … pw-44
	spec := func(deletion *int64, phase v1.PodPhase) *v1.Pod {
		p := new(v1.Pod)
		p.Spec.TerminationGracePeriodSeconds = new(int64(30))
		if deletion != nil {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.Unix(1, 0)), deletion
		}
		p.Status.Phase = phase
		return p
	}
	inputs := map[string]input{
		"update":          podUpdated{pod: spec(nil, "")},
		"create":          podUpdated{pod: spec(nil, ""), create: true},
		"deleted":         podUpdated{pod: spec(new(int64(30)), "")},
		"deleted, sooner": podUpdated{pod: spec(new(int64(5)), "")},
		"failed":          podUpdated{pod: spec(nil, v1.PodFailed)},
		"removed":         podRemoved{},
		"killed":          killed{},
		"killed, sooner":  killed{KillOptions{GracePeriodSeconds: new(int64(5))}},
		"its turn":        callDue{true},
		"not its turn":    callDue{false},
		"call failed":     returned{call: callSync, err: assert.AnError},
		"Sync done":       returned{call: callSync},
		"Sync terminal":   returned{call: callSync, terminal: true},
		"Terminate done":  returned{call: callTerminate},
		"Cleanup done":    returned{call: callCleanup},
	}
	lines := strings.Split(strings.Trim(transitions, "\n"), "\n")
	head := lines[0]
	var columns []int
	for s := Waiting; s <= Finished; s++ {
		columns = append(columns, len([]rune(head[:strings.Index(head, s.String())])))
	}
	assert.Len(t, lines, len(inputs)+1)
	for _, line := range lines[1:] {
		row := []rune(line)
		name := strings.TrimSpace(string(row[:columns[0]]))
		in, ok := inputs[name]
		assert.True(t, ok, name)
		for s := Waiting; s <= Finished; s++ {
			end := len(row)
			if s < Finished {
				end = columns[s+1]
			}
			want := strings.TrimSpace(string(row[columns[s]:end]))
			if want == "-" {
				continue // no such call can be in flight
			}
			before := lifecycle{state: s, pod: spec(nil, "")}
			if s >= Stopping {
				before.grace, before.cause = new(int64(30)), causeKilled
			}
			after, e := step(before, in)
			assert.Equal(t, want, transition(before, after, e), "%s in %v", name, s)
		}
	}
}

// transition formats a step as in the table.
func transition(before, after lifecycle, e effect) string {
	words := "·"
	if after.state != before.state {
		words = after.state.String()
	}
	if after.restart != nil && before.restart == nil {
		words += " again"
	}
	if e.wake {
		words += " wake"
	}
	if e.cancel {
		words += " cancel"
	}
	if e.call != callNone {
		words += " " + e.call.String()
	}
	if e.outcome != 0 {
		words += fmt.Sprintf(" (%v)", e.outcome)
	}
	return words
}
