package runtimetest

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Suite tells [TestRuntime] how to make containers on the runtime under
// test, and how much time to give it. Names of containers are set by the
// suite; everything else is left as given.
type Suite struct {
	// Long runs until it gets TERM, and then exits promptly. Required.
	Long v1.Container

	// Exit returns a container that exits by itself, soon, with the code (at
	// most 42). Not at once: a runtime that takes the time of a start when the
	// start is over would show the times of a shorter life in the wrong order.
	// Required.
	Exit func(code int32) v1.Container

	// Stubborn ignores TERM. Without an image, the promises about KILL are
	// skipped; with one, they take some 15 s of real grace periods.
	Stubborn v1.Container

	// Print returns a command which prints text to its standard output and
	// exits with the code; Block one that runs for a minute or more. Nil:
	// the promises of [runtime.Execer] and [runtime.StreamExecer] are skipped.
	Print func(text string, code int32) []string
	Block []string

	// NoInit: the runtime has no init containers.
	NoInit bool

	// Adjust changes each pod before it is used: host network where there is
	// no other, say. Nil: pods are fine as they are.
	Adjust func(pod *v1.Pod)

	// Reopen returns a second value for what rt manages, as an agent has
	// after its restart. Nil: the promise about it is skipped.
	Reopen func(t *testing.T, rt runtime.Runtime) runtime.Runtime

	// Within runs the body of each promise, new included. With synctest.Test
	// it runs in virtual time; with a function that calls t.Parallel first the
	// promises are checked beside each other, for which new has to return
	// runtimes that share nothing. Nil: it is called as it is.
	Within func(t *testing.T, body func(t *testing.T))

	// Patience is how long to wait for what the runtime has promised to do in
	// the end; also what it is not to take for what it promised to do at
	// once. Zero: 30 s. Poll is the time between two looks. Zero: 20 ms.
	Patience time.Duration
	Poll     time.Duration
}

// A promise is one sentence of the contract, and how to find out whether a
// runtime keeps it.
type promise struct {
	name  string // of its subtest
	says  string
	needs func(Suite, runtime.Runtime) string // why it cannot be checked, empty if it can; nil: it can
	check func(*trial)
}

// TestRuntime checks that the runtimes which new returns keep the contract of
// [runtime.Runtime], and that of the optional powers they have. Each promise is
// a subtest of its own, which says what was promised when it fails.
//
// Each promise asks new for a runtime, and uses pods with UIDs of its own, so
// that new may return the same value again, or one that runs other pods. What a
// promise made is killed at its end and, by a [runtime.GarbageCollector],
// removed. Not to be run on a node that matters: collecting garbage takes dead
// containers of other pods, too.
func TestRuntime(t *testing.T, new func(t *testing.T) runtime.Runtime, s Suite) {
	if s.Long.Image == "" || s.Exit == nil {
		t.Fatal("runtimetest: Suite.Long and Suite.Exit are required")
	}
	if s.Patience <= 0 {
		s.Patience = 30 * time.Second
	}
	if s.Poll <= 0 {
		s.Poll = 20 * time.Millisecond
	}
	within := s.Within
	if within == nil {
		within = func(t *testing.T, body func(t *testing.T)) { body(t) }
	}
	for _, group := range [][]promise{listerPromises, syncPromises, exitPromises, killPromises, powerPromises} {
		for _, p := range group {
			t.Run(p.name, func(t *testing.T) {
				t.Cleanup(func() {
					if t.Failed() {
						t.Logf("the promise that was broken: %s", p.says)
					}
				})
				within(t, func(t *testing.T) {
					rt := new(t)
					if p.needs != nil {
						if why := p.needs(s, rt); why != "" {
							t.Skip(why)
						}
					}
					p.check(&trial{T: t, rt: rt, suite: s})
				})
			})
		}
	}
}

func needsInit(s Suite, _ runtime.Runtime) string {
	if s.NoInit {
		return "Suite.NoInit is set"
	}
	return ""
}

func needsStubborn(s Suite, _ runtime.Runtime) string {
	if s.Stubborn.Image == "" {
		return "there is no Suite.Stubborn"
	}
	return ""
}
