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

// A Suite describes the runtime under test to [TestRuntime]: the containers it
// can run, and how long to wait for them. Only Containers.Long and
// Containers.Exit are required; a check that needs an unset field is not
// applicable.
type Suite struct {
	// Containers are the containers that pods are made of.
	Containers Containers

	// Commands are run in containers like Containers.Long.
	Commands Commands

	// Backend gives access to the backend of the runtime.
	Backend Backend

	// Timing is how long to wait for results.
	Timing Timing

	// Queued is set for a runtime that queues starts: SyncPod returns when a
	// start was accepted, and the container runs later. From the return of
	// SyncPod until then the container is listed in the state created, because
	// it would be started again if it were not listed. The checks of what runs
	// after SyncPod wait until no container of the pod is in the state created,
	// at most Timing.Timeout; no other requirement is relaxed. KillPod must cancel
	// queued starts. Two more checks are about the queue.
	Queued bool

	// NoInit disables the checks of init containers.
	NoInit bool

	// Gaps maps the names of the checks that the runtime is expected to fail to
	// the reason. They are run nevertheless: a gap whose check passes fails the
	// test, and so does a name that no check has.
	Gaps map[string]string

	// Adjust changes each pod before it is used, for example to host network.
	// If nil, pods are not changed.
	Adjust func(pod *v1.Pod)

	// Within runs the body of each check, including the call of new. With
	// synctest.Test it runs in virtual time. If nil, the body is called
	// directly.
	Within func(t *testing.T, body func(t *testing.T))

	// Parallel is the number of checks that run concurrently. In real time most
	// of a check is spent waiting, mainly for grace periods, so that a few times
	// the number of CPUs is appropriate. Checks of garbage collection, and those
	// that count what all checks create, run after the others, one at a time.
	// Zero means one.
	Parallel int
}

// Containers are the containers of a [Suite]. The suite sets their names; the
// other fields are used unchanged.
type Containers struct {
	// Long runs until it gets SIGTERM, and then exits promptly. It may take ten
	// times Timing.PollInterval to become ready for that. Required.
	Long v1.Container

	// Exit returns a container that exits with the code, which is at most 42,
	// after a short time. It must not exit immediately: a runtime that records
	// the start time when the start returns would report start and finish in the
	// wrong order. Required.
	Exit func(code int32) v1.Container

	// Stubborn ignores SIGTERM. The checks that need it wait about 15 s for
	// grace periods.
	Stubborn v1.Container

	// Prints returns a container that prints the line text once and then runs
	// like Long.
	Prints func(text string) v1.Container

	// Repeats prints each line of its standard input, and runs like Long after
	// the end of the input.
	Repeats v1.Container

	// OtherImage is a second image with which Long runs as well.
	OtherImage string

	// Message returns a container that writes text to its termination message
	// path and then exits with 1, as those of Exit do.
	Message func(text string) v1.Container

	// Listens returns a container that listens on the TCP port, on all addresses
	// of its pod, writes "hello" and a line feed to each connection, and closes
	// it.
	Listens func(port int32) v1.Container
}

// Commands are the commands of a [Suite].
type Commands struct {
	// Print returns a command that prints text to its standard output and exits
	// with the code; PrintErr one that prints to its standard error.
	Print    func(text string, code int32) []string
	PrintErr func(text string, code int32) []string

	// Block runs for a minute or more.
	Block []string

	// Echo copies its standard input to its standard output until the end of the
	// input, and exits with 0.
	Echo []string

	// Size prints the size of its terminal repeatedly, as "<rows> <columns>"
	// like stty.
	Size []string
}

// Backend gives a [Suite] access to the backend of the runtime.
type Backend struct {
	// Reopen returns a second runtime that manages the pods of rt, as after a
	// restart of the agent. rt is not used after that, except by functions that
	// were registered with t.Cleanup when it was made.
	Reopen func(t *testing.T, rt runtime.Runtime) runtime.Runtime

	// LoseSandbox makes the newest sandbox of the pod fail without a call of rt,
	// as when its process is killed.
	LoseSandbox func(t *testing.T, rt runtime.Runtime, uid types.UID) error

	// Calls returns the number of calls of its backend that rt has made.
	Calls func(rt runtime.Runtime) int
}

// Timing is how long a [Suite] waits.
type Timing struct {
	// Timeout is how long to wait for a result that the runtime produces
	// eventually. It is also the upper limit for calls that must return promptly.
	// Zero means 30 s.
	Timeout time.Duration

	// PollInterval is the time between two inspections. Zero means 20 ms.
	PollInterval time.Duration
}

// TestRuntime checks that the runtimes that new returns keep the contract of
// [runtime.Runtime], and of the optional interfaces they implement. Each check
// is a subtest. A failure reports the requirement, the part of the contract, the
// observed state and the usual cause. At the end the test logs how many checks
// passed, are known gaps, or were not applicable.
//
// Each check calls new and uses pods with UIDs of its own, so that new may
// return the same value repeatedly, or a runtime that runs other pods. The pods
// of a check are killed at its end and, if the runtime is a
// [runtime.GarbageCollector], removed. It must not run on a node whose dead
// containers matter: garbage collection removes those of other pods as well.
func TestRuntime(t *testing.T, new func(t *testing.T) runtime.Runtime, s Suite) {
	if s.Containers.Long.Image == "" || s.Containers.Exit == nil {
		t.Fatal("runtimetest: Suite.Containers.Long or Suite.Containers.Exit is not set")
	}
	if s.Timing.Timeout <= 0 {
		s.Timing.Timeout = 30 * time.Second
	}
	if s.Timing.PollInterval <= 0 {
		s.Timing.PollInterval = 20 * time.Millisecond
	}
	if s.Within == nil {
		s.Within = func(t *testing.T, body func(t *testing.T)) { body(t) }
	}
	all := requirements()
	for _, name := range slices.Sorted(maps.Keys(s.Gaps)) {
		if !slices.ContainsFunc(all, func(p requirement) bool { return p.name == name }) {
			t.Fatalf("runtimetest: Suite.Gaps: no check %q", name)
		}
		if strings.TrimSpace(s.Gaps[name]) == "" {
			t.Fatalf("runtimetest: Suite.Gaps: no reason for %s", name)
		}
	}
	if s.Queued {
		s.Backend, new = unwrapped(s.Backend), s.waiting(new)
	}
	k := &run{suite: s, new: new, total: len(all)}
	t.Cleanup(func() { t.Log(k.summary()) })
	k.runAll(t, all)
}

// A run is one call of TestRuntime.
type run struct {
	suite Suite
	new   func(t *testing.T) runtime.Runtime
	total int

	mu       sync.Mutex
	outcomes map[outcome][]string
}

// runAll checks all requirements, at most Suite.Parallel at a time.
func (k *run) runAll(t *testing.T, all []requirement) {
	check := func(p requirement) { t.Run(p.name, func(t *testing.T) { k.run(t, p) }) }
	if k.suite.Parallel <= 1 {
		for _, p := range all {
			check(p)
		}
		return
	}
	// Not t.Parallel: its limit is one flag for the whole test binary, and a check
	// could not run alone.
	queue := make(chan requirement)
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

// run checks one requirement.
func (k *run) run(t *testing.T, p requirement) {
	tr := &checkT{suite: k.suite, gap: k.suite.Gaps[p.name]}
	t.Cleanup(func() {
		k.record(p.name, tr.outcome(t))
		if t.Failed() {
			t.Log(p.explain())
		}
	})
	k.suite.Within(t, func(t *testing.T) {
		tr.T, tr.rt = t, k.new(t)
		if need := p.lacks(k.suite, tr.rt); need != "" {
			tr.notApplicable = true
			t.Skipf("not applicable: requires %s", need)
		}
		if tr.gap == "" {
			p.check(tr)
			return
		}
		// Fatalf ends this goroutine, not t's.
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.check(tr)
		}()
		<-done
		tr.evaluateGap()
	})
	if tr.notApplicable { // Within may have passed another T
		t.SkipNow()
	}
}

// explain describes a violated requirement.
func (p requirement) explain() string {
	return "violated requirement: " + p.text +
		"\n\tcontract: " + p.contract +
		"\n\tusual cause: " + p.cause +
		"\n\tif it is a known gap, add " + p.name + " to Suite.Gaps"
}
