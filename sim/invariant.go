package sim

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// An Invariant must hold in every run, for any schedule.
type Invariant struct {
	Name        string // "one-live-instance"
	Description string // one sentence
	Rules       string // the rules of docs/rules that it is derived from; empty: none

	// requiresCurrentLists disables the check while an agent may act on a stale list:
	// it does not inspect a pod that such a list omits (rule pleg-18), and may start
	// it a second time.
	requiresCurrentLists bool

	// newCheck returns the check of one run, which is called with each entry in order.
	// It returns how the entry violates the invariant; empty: it does not.
	newCheck func(*truth) func(*Entry) string
}

// A Violation is a violated invariant.
type Violation struct {
	At        time.Duration // since the start of the run
	Invariant string        // its name
	UID       types.UID     // of the affected pod; empty: none
	Message   string
}

// String returns the violation in one line.
func (v Violation) String() string {
	return fmt.Sprintf("%v: %s: pod %q: %s", v.At, v.Invariant, v.UID, v.Message)
}

// Invariants returns all invariants.
func Invariants() []Invariant {
	var out []Invariant
	for _, list := range [][]Invariant{
		runtimeInvariants(), terminationInvariants(), statusInvariants(), hookInvariants(), finalInvariants(), eventInvariants(), nodeInvariants(),
		latencyInvariants(), restartCountInvariants(), probeInvariants(), volumeInvariants(), imageInvariants(), allocationInvariants(),
		claimInvariants(), restoreInvariants(),
	} {
		out = append(out, list...)
	}
	return out
}
