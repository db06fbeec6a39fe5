package sim

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A Law is what has to hold in every run, whatever the schedule.
type Invariant struct {
	Name  string // "one-live-instance"
	Says  string // in a sentence
	Rules string // the numbers of the rules it is made of

	// lists: it holds only where lists show what is so. An agent that a stale one
	// has told that a pod has gone, of which no inspection is made then (pleg-18),
	// may begin it anew.
	lists bool

	// begin returns what judges the entries of one run, in order. Its answer is
	// how the law was broken; empty: it was not.
	begin func(*truth) func(*Entry) string
}

// A Violation is a law broken.
type Violation struct {
	At   time.Duration
	Law  string
	UID  types.UID // of the pod it is about; empty: none
	What string
}

// String returns the violation in one line.
func (v Violation) String() string {
	return fmt.Sprintf("%v: %s: pod %q: %s", v.At, v.Law, v.UID, v.What)
}

// Laws returns all laws.
func Invariants() []Invariant {
	var out []Invariant
	for _, list := range [][]Invariant{runtimeLaws(), endLaws(), statusLaws(), restLaws(), eventLaws(), nodeLaws(), soonLaws(), attemptLaws(), probeLaws(), volumeLaws(), imageLaws(), allocationLaws()} {
		out = append(out, list...)
	}
	return out
}
