// Package runtimetest provides an in-memory runtime for tests and simulations,
// and a conformance suite for implementations of runtime.Runtime.
//
// [Runtime] starts, restarts and stops pods like a node: it computes each step
// with package runtime/cri/plan and creates sandboxes with addresses, runs init
// containers in order, counts restarts, and stops pods with SIGTERM, a grace
// period and SIGKILL. It executes nothing; containers behave as [fake.Behavior] and
// the methods called by the test specify.
//
// [TestRuntime] checks whether a runtime.Runtime keeps the contract documented
// in package runtime. [Checks] lists its checks; docs/conformance.md describes
// them.
//
// # Usage
//
// The zero Runtime is an empty node:
//
//	rt := new(runtimetest.Runtime)
//	rt.Behave("job", fake.Behavior{Exit: &fake.Exit{After: time.Minute, Code: 1}})
//	rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod})
//
// A test changes the state with Start, Exit, Hang, Crash and Remove, and
// [Runtime.Restore] adds a pod as its status describes it. The
// function passed to [Runtime.Inject] returns the fault of each call: an error,
// a delay, a hang, or an effect whose response is lost. Pods are identified by
// UID.
//
// The test of a runtime describes the containers that the runtime can run, and
// its known gaps:
//
//	func TestContract(t *testing.T) {
//		runtimetest.TestRuntime(t, newRuntime, runtimetest.Suite{
//			Containers: runtimetest.Containers{Long: …, Exit: …, Stubborn: …},
//			Gaps:       map[string]string{"EphemeralContainerIsStartedOnce": "containers cannot be added to a VM"},
//		})
//	}
//
// A runtime that accepts a start and carries it out later, such as one over a job
// API, sets Suite.Queued.
//
// Each check is a subtest: -run TestContract/KillObeysItsContext selects one.
// With -v the test ends with a summary.
//
// # Concurrency
//
// All methods of Runtime are safe for concurrent use. It has no goroutines and
// needs no Close; pending exits are timers.
//
// # Guarantees and limits
//
// Runtime uses package time, so that one created in a testing/synctest bubble
// runs in virtual time. Without injected faults and with calls from a single
// goroutine, the same calls at the same times have the same results, including
// IDs.
//
// Listing pods takes one pass and a constant number of allocations.
//
// It runs no probes, but applies SyncRequest.Probes. It has no hooks, logs,
// images, volume contents or resources; resizes in a plan are ignored.
// Containers are never in the state unknown, and created only while
// Behavior.QueueDelay lasts.
//
// # Differences from the kubelet
//
// The grace period has no minimum of two seconds, and the grace period of a
// probe is not used. Crash back-off is disabled unless [Runtime].Backoff is set,
// and depends on the restart count alone, so that it does not need a record. The
// differences of package plan apply as well.
//
// # Testing
//
// The suite runs against Runtime in virtual and in real time, against the
// engine of package cri over processes and over containerd, and against
// runtimes that each break one requirement, which it must detect. Beyond this
// repository it imports only package testing.
//
// Not checked: the duration of a list (Backend.Calls counts calls of the
// backend instead), the targets of the URLs of a stream server, and the contents
// of logs beyond the file: following, tails and timestamps are not part of the
// runtime interfaces.
//
// # Stability
//
// Settled: a change that breaks a caller is announced a minor version before it.
package runtimetest
