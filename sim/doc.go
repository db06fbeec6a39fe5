// Package sim simulates a node from a seed: an agent of package agent in memory, in
// virtual time, with everything that may go wrong, and the laws that have to
// hold all the same.
//
// # What it decides
//
// What happens to a node, and when. [Draw] makes a [Schedule] from a seed: pods
// of all shapes arrive, change, are deleted, vanish and come back; containers
// exit, hang and run out of memory; sandboxes are lost; an operator removes
// things; calls of the runtime and of the API fail, hang, are late, lose their
// answers, or list what was; hints are lost, after hours in which they were good;
// the runtime is away for minutes; the node is full; others change objects and
// say that pods have failed; the agent is killed at any call that it makes of the
// outside, or the machine is started again. In some seeds containers have probes, pods
// volumes, or requests that are resized, and images are removed while pods start; the
// calls for them fail, hang and lose their answers as well. [Run] lets it happen, and holds [Laws] against the
// truth: what the runtime really did and what the API was really told, which no
// fault touches.
//
// [Node] is the agent without the faults: an agent.Agent with its source, runtime
// and sink in memory, for tests of controllers and of other things that need pods
// which live.
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
//	1s add web grace=5 volumes=1 init:i=exit-0-2s main:c:500=run_stubborn_ready-3s
//	9s fault KillPod kind=lost percent=50 for=30s
//	9s resize web/c cpu=800
//	9s collect
//	10s delete web
//	11s kill calls=3 when=after down=4s
//
// A policy or a runtime of one's own is simulated by a [Machine]. [Memory] is the
// one that a Config without one has; [MemoryOf] is that with another back-off, and
// package simcri has the engine of runtime/cri over a CRI runtime in memory. What a
// policy does is counted in the trace, or in Config.Each as it happens, and
// compared over the same schedule; the laws say what else it breaks, and one that it
// is meant to break is known by its name (TestAnotherBackOffIsSimulated):
//
//	report, err := sim.Run(ctx, sim.Config{
//		Schedule: schedule, Machine: sim.MemoryOf(&runtimetest.Runtime{Backoff: time.Second}),
//		Each:     func(e sim.Entry) { if e.Kind == sim.Started { starts++ } },
//	})
//
// A Machine of one's own makes, for each agent, a client of which every call goes
// through [Agent.Call], and tells Setup.Observe what really happens; memory.go
// shows it.
//
// [Check] does all that in a test, and says of a seed that breaks a law what is to
// be known: the law in words, the least schedule that breaks it still (by
// [Shrink]), the trace around it, and how to run it again. [Report.Timeline]
// shows a run to people, as does examples/simulate:
//
//	go run ./examples/simulate --seed 7 --svg node.svg
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
// containers that end at once), and select with two cases ready. 40 seeds, run
// in 14 pairs each with the race detector, four pairs of them under load, gave equal
// traces; a test repeats a pair. More than 8 pods that are due at one instant would
// share the places of pleg in the scheduler's order.
//
// A Node with NodeConfig.Seed is repeatable in the same way: in a bubble, with equal
// calls at equal virtual times from one goroutine, and with a Runtime, Admitter and
// Sources that are deterministic and do not depend on the order of calls at one
// instant, two Nodes deliver equal statuses at equal times (a test compares runs
// of 40 pods and of evictions). The exceptions are those above, and what a Sink or
// a Hook of the caller does at the same instant as the caller's own goroutine. The
// IDs that runtimetest.Runtime makes follow the order of its calls. Without a Seed
// nothing is promised: the same test differed in each of 10 runs.
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
// regular container ran, stays Pending, as with the kubelet (rt-41),
// which is let pass. Back-offs are held to be 10 seconds or more, not to double.
//
// The optional subsystems of the agent are the real ones: prober.Manager,
// volume.Manager, allocation.Manager and imagegc.Manager, connected by package agent.
// Simulated are the probes themselves, the volume plugin, and the images of Memory.
// Records of volumes and allocations are files in a temporary directory of the run, in
// memory where the system has /dev/shm. The images of pods are protected by the hold
// during SyncPod alone, because the imagegc.Manager does not get the desired pods.
// There are no cgroups and no pod-level resources; only CPU requests are resized, of
// pods of the API. A Node has none of the four: the probes that a container declares
// pass ReadyAfter its start. That others say of a pod
// that it has failed is simulated while no agent runs: one that runs hears nothing
// of statuses that are not its own.
//
// Only lists of all there is are stale, not those by which an engine acts on one
// pod. An agent that such a list has told that a pod has gone believes it (pleg-18),
// and may begin the pod anew beside itself: laws that rest on true lists are not
// held until the next good one.
//
// # Differences from the kubelet
//
// Pods of the API that vanish may come back under their UID, which no API server
// does; a source that forgets for a while may.
//
// # Testing
//
// The suite runs 100 seeds, and that of simcri 20. KUBEPARTS_SIM_SEEDS says how
// many, and KUBEPARTS_SIM_FROM which is the first. A failure prints the seed, the
// schedule and the end of the trace.
//
// # Stability
//
// Experimental: try it, and expect it to change.
package sim
