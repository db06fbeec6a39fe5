// Package sim simulates a node from a seed: an agent of package agent in memory
// and in virtual time, with injected faults, and invariants that must hold in
// spite of them.
//
// # Behavior
//
// It decides what happens to a node, and when. [Draw] derives a [Schedule] from a
// seed. Its steps add pods of all shapes, change, delete and remove them, and add
// them again; containers exit, hang and run out of memory; sandboxes are lost; an
// operator removes containers; calls of the runtime and of the API fail, hang, are
// late, lose their responses or return stale lists; runtime events are lost, also
// after hours in which none was; the runtime is unavailable for minutes; the node is
// full; other clients change objects and mark pods as failed; the agent is killed at
// any call to the outside, or the machine is rebooted. In some seeds containers have
// probes, pods have volumes, resource claims or requests that are resized, and images are
// removed while pods start; the calls for these fail, hang and lose their responses as well.
// [Run] applies the schedule and checks the [Invariants] against the ground truth:
// the changes that the runtime made and the calls that the API received, which faults
// do not affect.
//
// With Options.Checkpoints, and a Machine whose runtime is a runtime.PodCheckpointer, the agent writes checkpoints of
// pods, and other pods are restored from them (KEP-5823): with faults of these calls, and with the agent killed and the
// sandbox lost meanwhile. A checkpoint of which the agent does not know that it is complete is not used.
//
// [Node] is the agent without faults: an agent.Agent with its source, runtime and
// sink in memory, for tests of controllers and of other programs that need running
// pods.
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
// A [Checker] evaluates the invariants for entries that are not of a run, such as those that package replay makes of a
// recording.
//
// A Schedule is plain data: one line of text per step, which [Parse] reads. A
// Schedule without some of its lines is a Schedule too, so that a failure can be
// minimized. The behavior of a container is encoded in the tag of its image; see
// [fake.Behavior] and [Image].
//
//	1s add web grace=5 volumes=1 claims=gpu-a init:i=exit=0@2s main:c:500=ignoreTERM,ready=3s
//	9s fault KillPod kind=lost percent=50 for=30s
//	9s resize web/c cpu=800
//	9s checkpoint web
//	9500ms restore copy from=web
//	9s collect
//	10s delete web
//	11s kill calls=3 when=after down=4s
//
// A [Machine] simulates another policy or runtime. [Memory] is the default;
// [MemoryOf] is the same with another runtimetest.Runtime, for example another
// back-off; package simcri runs the engine of runtime/cri over a CRI runtime in
// memory. The effect of a policy is measured in the trace, or in Config.OnEntry while
// the simulation runs, and compared for the same schedule. The invariants report what
// else the policy breaks; an invariant that it is meant to break is recognized by its
// name (TestAnotherBackOffIsSimulated):
//
//	report, err := sim.Run(ctx, sim.Config{
//		Schedule: schedule, Machine: sim.MemoryOf(&runtimetest.Runtime{Backoff: time.Second}),
//		OnEntry:  func(e sim.Entry) { if e.Kind == sim.Started { starts++ } },
//	})
//
// A custom Machine creates a client for each agent, passes every call of the client
// through [Agent.Call], and reports every change to Setup.Observe; memory.go is an
// example.
//
// [Check] does all this in a test. For a seed that violates an invariant it reports
// the description of the invariant, the smallest schedule that still violates it (by
// [Shrink]), the trace before the violation, and how to repeat the run.
// [Report.Timeline] draws a run, as examples/simulate does:
//
//	go run ./examples/simulate --seed 7 --svg node.svg
//
// # Concurrency
//
// Run must be called in a testing/synctest bubble, or in a program with package
// virtualtime; otherwise it takes the simulated time. Runs are independent of each other.
// All methods of Node are safe for concurrent use.
//
// # Guarantees and limits
//
// A seed determines a run. Each call to the outside, and each step from one component
// of the agent to another, has a latency that is derived from the seed and from the
// identity of the call, never from the order in which goroutines run. Therefore
// hardly any two things happen at the same instant, and where they do, their order
// rarely matters. The Go scheduler still decides the order of what two goroutines do
// at one instant (the first calls of an agent, two containers that exit
// simultaneously) and the choice of a select with two ready cases. 40 seeds, run in 14
// pairs each with the race detector, four pairs of them under load, gave equal traces;
// a test repeats one pair. If more than 8 pods were due at the same instant, the
// scheduler would decide which of them pleg inspects first.
//
// A Node with NodeConfig.Seed is repeatable in the same way: in a bubble, with equal
// calls at equal virtual times from one goroutine, and with a Runtime, Admitter and
// Sources that are deterministic and do not depend on the order of calls at one
// instant, two Nodes deliver equal statuses at equal times (a test compares runs
// of 40 pods and of evictions). The exceptions are those above, and calls that a Sink
// or a Hook of the caller makes at the same instant as the caller's own goroutine. The
// IDs that runtimetest.Runtime makes follow the order of its calls. Without a Seed
// there is no such guarantee: the same test differed in each of 10 runs.
//
// A kill cancels the agent's context at that instant. Its calls have no effect from
// then on, its state in memory is lost, and the trace has no further entry of it. In
// Memory, SyncPod and KillPod are one call each: the agent may be killed at any
// instant of it, but not between any two actions. With simcri, it may be killed between
// any two calls of the CRI, and the next agent gets its state directory as it was then.
//
// Invariants cite the rules of docs/rules that they are derived from. Of the rules
// inv-1 to inv-18, these cannot be observed from outside or are not checked in runs:
// inv-5 where it concerns a channel (podworker tests it), inv-12 with its exact bound
// (pleg), inv-13 (podsource), inv-15 (runtime/cri/plan). inv-17 is checked by the
// bubble: a run in a bubble does not end while a goroutine is left.
//
// A pod with restart policy Never that loses its sandbox before a regular container
// ran stays Pending, as with the kubelet (rule rt-41); no invariant forbids it.
// Back-offs are checked to be at least 10 seconds, not to double.
//
// The optional subsystems of the agent are the real ones: prober.Manager,
// volume.Manager, allocation.Manager, imagegc.Manager and dra.Manager, connected by package
// agent. Simulated are the probes themselves, the volume plugin, the images of Memory, and
// the drivers of resource claims: they hang, fail, restart, return results for another
// claim, and lose their state when the machine is rebooted. A driver that reports success
// without having prepared a claim is not simulated, since no agent can detect it. A claim
// without users is allocated to another device when a pod uses it again.
// Checkpoints of volumes and allocations are files in a temporary directory of the
// run, in memory where the system has /dev/shm. The images of pods are protected only
// by the pin during SyncPod, because the imagegc.Manager does not get the desired
// pods. There are no cgroups and no pod-level resources; only CPU requests are
// resized, of pods of the API. A Node has none of the five subsystems: the declared
// probes of a container succeed ReadyAfter its start. Another client marks a pod as
// failed only while no agent runs: a running agent does not observe statuses that it
// did not write itself.
//
// Only lists of all pods are stale, not the inspections of one pod that an engine acts
// on. If a stale list omits a pod, the agent treats the pod as removed without
// inspecting it (rule pleg-18), and may start it a second time. Invariants that depend
// on current lists are therefore not checked until the next current list.
//
// # Differences from the kubelet
//
// Pods of the API that vanish may be added again with the same UID, which no API
// server does; a source that temporarily loses its pods may.
//
// # Testing
//
// The tests run 100 seeds, and those of simcri 20. KUBEPARTS_SIM_SEEDS is the number of
// seeds and KUBEPARTS_SIM_FROM the first one. A failure prints the seed, the schedule
// and the end of the trace.
//
// # Stability
//
// Experimental: the API may change in any release.
package sim
