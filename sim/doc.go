// Package sim simulates a node from a seed: a whole agent, wired in memory, in
// virtual time, with everything that may go wrong, and the laws that have to
// hold all the same.
//
// # What it decides
//
// What happens to a node, and when. [Draw] makes a [Schedule] from a seed: pods
// of all shapes arrive, change, are deleted, vanish and come back; containers
// exit, hang and run out of memory; sandboxes are lost; an operator removes
// things; calls of the runtime and of the API fail, hang, are late, or lose their
// answers; hints are lost; the agent is killed at any call that it makes of the
// outside, and started again. [Run] lets it happen, and holds [Laws] against the
// truth: what the runtime really did and what the API was really told, which no
// fault touches.
//
// [Node] is the agent without the weather: source, merge, loop, workers,
// pipeline, runtime, pleg, status and sink in memory, for tests of controllers
// and of other things that need pods which live.
//
// # Usage
//
//	func TestNode(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			report, err := sim.Run(t.Context(), sim.Config{Seed: 7})
//			… report.Violations, report.Trace
//		})
//	}
//
// A Schedule is plain data: a line of text for each step, which [Parse] reads.
// What is left when lines are taken out is a Schedule too, so that a failure can
// be made small. Containers do what the tags of their images say; see
// [Behaviour].
//
//	1s add web grace=5 init:i=exit-0-2s main:c=run_stubborn
//	9s fault KillPod kind=lost percent=50 for=30s
//	10s delete web
//	11s kill calls=3 when=after down=4s
//
// A runtime of one's own is simulated by a [Machine]; [Memory] is the one that a
// Config without one has, and package simcri has the engine of runtime/cri over a
// CRI runtime in memory.
//
// [Check] does all that in a test, and says of a seed that breaks a law what is to
// be known: the law in words, the least schedule that breaks it still (by
// [Shrink]), the trace around it, and how to run it again. [Report.Timeline]
// shows a run to people, as does examples/hollow:
//
//	go run ./examples/hollow --seed 7 --svg node.svg
//
// # Concurrency
//
// Run is called in a testing/synctest bubble, or takes the time that it
// simulates. Runs are independent of each other. All methods of Node may be
// called from any goroutine.
//
// # Guarantees and limits
//
// A seed is a run: each call of the outside takes moments of its own, and so
// does each step from one part of the agent to another, which are drawn from the
// seed and from what the call is, never from the order in which goroutines come.
// So nearly nothing happens at the same instant as something else, and where
// things do, their order is seldom seen. What is left to Go's scheduler is the
// order of what two goroutines do at one instant (an agent's first calls, two
// containers that end at once), and select with two cases ready. 100 seeds, run
// 18 times each with 1 to 3 processors, gave one trace each; a test repeats 40 of
// them. More than 8 pods that are due at one instant would share the places of
// pleg in the scheduler's order.
//
// A kill ends the agent's context at that instant, and no call of it has an
// effect from then on; what it was told is lost with it. In Memory SyncPod and
// KillPod are one call each, within which it may die at any instant but not
// between any two steps; over simcri, between all calls of the CRI, with its
// state directory as it was.
//
// The laws name their rules. These of the invariants (section 14 of the lifecycle
// specification) cannot be seen from outside, or are not held against runs: inv-5
// as far as it is about a channel (podworker tests it), inv-12 in its exact bound
// (pleg), inv-13 (podsource), inv-15 (runtime/cri/plan). inv-17 is the bubble's:
// a run in one does not end while a goroutine is left.
//
// A pod whose restart policy is Never, and that loses its sandbox before a
// regular container ran, stays Pending, as with the kubelet (rt-41), and of a static
// pod that is evicted while it waits for its turn nothing is ever told (pw-31):
// both are let pass. Back-offs are held to be 10 seconds or more, not to double.
//
// There are no probes yet, but that those which a container declares pass
// ReadyAfter its start; no volumes, cgroups or resizes; and lists are never
// stale.
//
// # Differences from the kubelet
//
// Pods of the API that vanish may come back under their UID, which no API server
// does; a source that forgets for a while may.
//
// # Testing
//
// The suite runs 300 seeds, and that of simcri 50. KUBEPARTS_SIM_SEEDS says how
// many, and KUBEPARTS_SIM_FROM which is the first. A failure prints the seed, the
// schedule and the end of the trace.
package sim
