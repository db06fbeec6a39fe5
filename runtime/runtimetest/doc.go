// Package runtimetest has a runtime of pods in memory, for tests and for
// simulations, and the suite that says whether a runtime keeps its contract.
//
// # What it decides
//
// [Runtime] decides what a node would do: it makes sandboxes with addresses,
// runs init containers in order, restarts what has exited as restartPolicy
// says, counts restarts, and stops pods with TERM, a grace period and KILL. It
// executes nothing; containers behave as [Behaviour] says and as a test
// commands.
//
// [TestRuntime] decides whether any runtime.Runtime, real or not, keeps what
// the comments of package runtime promise. [Checks] lists its checks, and
// docs/conformance.md shows them.
//
// # Usage
//
// The zero Runtime is an empty node:
//
//	rt := new(runtimetest.Runtime)
//	rt.Behave("job", runtimetest.Behaviour{Exit: &runtimetest.Exit{After: time.Minute, Code: 1}})
//	rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod})
//
// A test makes things happen with Start, Exit, Hang, Crash and Remove; it makes
// calls fail with [Runtime.Inject], which is asked for the fault of each call:
// an error, a delay, a hang, or an effect whose answer is lost. Pods are named
// by UID everywhere.
//
// A runtime of one's own is checked by a test that says how to make containers
// on it, and what it is known not to keep:
//
//	func TestContract(t *testing.T) {
//		runtimetest.TestRuntime(t, newRuntime, runtimetest.Suite{
//			Long: …, Exit: …, Stubborn: …,
//			Gaps: map[string]string{"EphemeralContainerIsStartedOnce": "our VMs cannot have a container added"},
//		})
//	}
//
// Each check is a subtest: -run TestContract/KillObeysItsContext runs one. One
// that fails says what was promised, where, what was seen, and what is usually
// the cause. With -v the test ends with a summary.
//
// # Concurrency
//
// All methods of Runtime may be called from many goroutines at once. It has no
// goroutine of its own, and needs no end: what is to happen later is a timer.
//
// # Guarantees and limits
//
// Time is package time, so that a Runtime made in a testing/synctest bubble
// lives in virtual time. Without injected faults and with one goroutine calling,
// the same calls at the same times have the same results, IDs included.
//
// A list of pods is one pass with a constant number of allocations.
//
// It runs no probes, but does as SyncRequest.Probes say. There are no hooks, logs,
// images, volumes' contents or resources.
// Containers are never seen created and not started, nor in state unknown.
//
// # Differences from the kubelet
//
// Where two instances of a container run, both are seen to (lq-12): the newest
// running one counts and the others are stopped. The grace period has no
// minimum of two seconds (lq-34). Crash back-off is off unless asked for, and
// depends on the restart count alone, so that it survives (lq-29).
//
// # Testing
//
// The suite is run against this package's Runtime in virtual and in real time,
// against the engine of package cri over processes and over containerd, and
// against runtimes that break a promise each, which it must find. It uses
// package testing and nothing else from outside the house.
//
// Not checked, because it cannot be seen from outside or needs more than a suite
// can say: how long a list takes (calls of the backend are counted, where
// Suite.Calls can), what a stream server's URLs lead to, and reading logs beyond
// the file: following, tails and times are no power of a runtime.
//
// # Stability
//
// Settled: a change that breaks a caller is announced a minor version before it.
package runtimetest
