package runtimetest

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Suite tells [TestRuntime] how to make containers on the runtime under
// test, and how much time to give it. Names of containers are set by the
// suite; everything else is left as given. What is not required may be left
// out: the checks that need it are then not applicable.
type Suite struct {
	// Long runs until it gets TERM, and then exits promptly. It may take a
	// moment, ten times Poll, to get ready for that. Required.
	Long v1.Container

	// Exit returns a container that exits by itself, soon, with the code (at
	// most 42). Not at once: a runtime that takes the time of a start when the
	// start is over would show the times of a shorter life in the wrong order.
	// Required.
	Exit func(code int32) v1.Container

	// Stubborn ignores TERM. With it, the promises about KILL take some 15 s
	// of real grace periods.
	Stubborn v1.Container

	// Says returns a container that prints the line text once, and then runs
	// as Long does.
	Says func(text string) v1.Container

	// Repeats prints each line of its input, and runs on as Long does when
	// that ends.
	Repeats v1.Container

	// Other is another image with which Long runs just as well.
	Other string

	// Message returns a container like those of Exit which writes the text to
	// its termination message path before it exits with 1.
	Message func(text string) v1.Container

	// Greets returns a container that listens on the TCP port, on all
	// addresses of its pod, writes "hello" and a line feed to whoever connects,
	// and hangs up.
	Greets func(port int32) v1.Container

	// Commands for containers like Long. Print returns one which prints text to
	// its standard output and exits with the code; PrintErr the same to its
	// standard error. Block runs for a minute or more. Echo copies its input to
	// its output until that ends, and exits with 0.
	Print    func(text string, code int32) []string
	PrintErr func(text string, code int32) []string
	Block    []string
	Echo     []string

	// Size is a command that prints the size of its terminal, "<rows> <columns>"
	// as stty does, again and again.
	Size []string

	// NoInit: the runtime has no init containers.
	NoInit bool

	// Gaps are the promises which the runtime is known not to keep, by the
	// names of their checks, with the reason. They are checked all the same: a
	// gap that is none any more fails the test, and so does a name that no
	// check has.
	Gaps map[string]string

	// Adjust changes each pod before it is used: host network where there is
	// no other, say. Nil: pods are fine as they are.
	Adjust func(pod *v1.Pod)

	// Reopen returns a second value for what rt manages, as an agent has
	// after its restart. rt is not used any more after that, but for what the
	// function that made it has registered with t.Cleanup.
	Reopen func(t *testing.T, rt runtime.Runtime) runtime.Runtime

	// LoseSandbox lets the pod lose its newest sandbox behind the back of rt, as
	// when somebody kills what holds it together.
	LoseSandbox func(t *testing.T, rt runtime.Runtime, uid types.UID) error

	// Calls returns how many calls of its backend rt has made so far.
	Calls func(rt runtime.Runtime) int

	// Within runs the body of each promise, new included. With synctest.Test
	// it runs in virtual time. Nil: it is called as it is.
	Within func(t *testing.T, body func(t *testing.T))

	// Parallel is how many promises are checked beside each other. Most of
	// what a check takes in real time is waiting, for grace periods above all:
	// a few times the number of CPUs is right. Those about garbage, and those
	// which count what all of them make, come after the others, one by one.
	// Zero: all are checked one after another.
	Parallel int

	// Patience is how long to wait for what the runtime has promised to do in
	// the end; also what it is not to take for what it promised to do at
	// once. Zero: 30 s. Poll is the time between two looks. Zero: 20 ms.
	Patience time.Duration
	Poll     time.Duration
}

// TestRuntime checks that the runtimes which new returns keep the contract of
// [runtime.Runtime], and that of the optional powers they have. Each promise is
// a subtest of its own, so that -run picks one. When it fails it says what was
// promised, where, what was seen instead, and what is usually the cause. At the
// end the test logs how many promises were kept, are known gaps, or were not
// applicable.
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
	if s.Within == nil {
		s.Within = func(t *testing.T, body func(t *testing.T)) { body(t) }
	}
	all := promises()
	for _, name := range slices.Sorted(maps.Keys(s.Gaps)) {
		if !slices.ContainsFunc(all, func(p promise) bool { return p.name == name }) {
			t.Fatalf("runtimetest: Suite.Gaps names %q, and there is no such check", name)
		}
		if strings.TrimSpace(s.Gaps[name]) == "" {
			t.Fatalf("runtimetest: Suite.Gaps has no reason for %s", name)
		}
	}
	k := &kit{suite: s, new: new, total: len(all)}
	t.Cleanup(func() { t.Log(k.summary()) })
	k.runAll(t, all)
}

// A kit is one TestRuntime.
type kit struct {
	suite Suite
	new   func(t *testing.T) runtime.Runtime
	total int

	mu       sync.Mutex
	verdicts map[verdict][]string
}

// runAll checks all promises, at most Suite.Parallel at a time.
func (k *kit) runAll(t *testing.T, all []promise) {
	check := func(p promise) { t.Run(p.name, func(t *testing.T) { k.run(t, p) }) }
	if k.suite.Parallel <= 1 {
		for _, p := range all {
			check(p)
		}
		return
	}
	// Not t.Parallel, whose limit is one flag for everything in the test's
	// binary, and which would leave no time at which a check is alone.
	queue := make(chan promise)
	var workers sync.WaitGroup
	for range k.suite.Parallel {
		workers.Go(func() {
			for p := range queue {
				check(p)
			}
		})
	}
	for _, p := range all {
		if !p.alone {
			queue <- p
		}
	}
	close(queue)
	workers.Wait()
	for _, p := range all {
		if p.alone {
			check(p)
		}
	}
}

// run checks one promise.
func (k *kit) run(t *testing.T, p promise) {
	tr := &trial{suite: k.suite, gap: k.suite.Gaps[p.name]}
	t.Cleanup(func() {
		k.judge(p.name, tr.verdict(t))
		if t.Failed() {
			t.Log(p.explain())
		}
	})
	k.suite.Within(t, func(t *testing.T) {
		tr.T, tr.rt = t, k.new(t)
		if need := p.lacks(k.suite, tr.rt); need != "" {
			tr.notApplicable = true
			t.Skipf("not applicable: it needs %s", need)
		}
		if tr.gap == "" {
			p.check(tr)
			return
		}
		// In a goroutine of its own, which a Fatalf ends without ending t.
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.check(tr)
		}()
		<-done
		tr.judgeGap()
	})
	if tr.notApplicable { // Within may have had a T of its own
		t.SkipNow()
	}
}

// explain says what a person needs to know of a promise that is broken.
func (p promise) explain() string {
	return "the promise that was broken: " + p.says +
		"\n\tthe contract is in: " + p.where +
		"\n\tthe usual cause: " + p.cause +
		"\n\tif it is a known gap, put " + p.name + " into Suite.Gaps"
}
