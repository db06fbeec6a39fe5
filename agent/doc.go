// Package agent assembles the parts of kubeparts to a node agent: the pods that
// its sources specify run on its runtime, and their statuses reach its sink.
//
// # What it decides
//
// Nothing about pods. It constructs the parts, connects them, runs them and stops
// them; every decision belongs to a part and is documented there.
//
//	Sources ─▶ podsource.Merge ─▶ podworker.Loop ─▶ Workers ─▶ Pipeline ─▶ Runtime
//	                                   ▲                          │ status.Manager ─▶ Sink
//	                 podworker.Inbox ──┘                          │ prober.Manager
//	                   ▲         ▲                                └ Admitters, Volumes, Cgroups, …
//	        pleg.Generator    prober.Manager
//
// The parts are constructed in the order of their dependencies, and none is
// changed afterwards. Notifications of changed pods run against that order, from
// pleg and prober to the Loop; the podworker.Inbox carries them.
//
// # Usage
//
//	a, err := agent.New(agent.Config{
//		Runtime: rt,                                                        // runtime.Runtime
//		Sources: map[string]podsource.PodSource{podsource.FileSource: dir},
//		Sink:    sink,                                                      // status.StatusSink
//	})
//	err = a.Run(ctx)   // blocks; if ctx is done the agent stops and the pods keep running
//	err = a.Drain(ctx) // from another goroutine: terminates all pods
//
// Everything else in [Config] is optional: a nil subsystem is left out. The
// constructed parts are available by methods, such as [Agent.Workers] to evict a
// pod, or [Agent.Loop] to explain why a pod is not running. Config.Adjust changes
// the configuration of a single part: its periods, limits and hooks.
//
// An agent that needs another arrangement of the parts uses the parts.
//
// # Concurrency
//
// All methods of Agent are safe for concurrent use. Run runs the parts that New
// constructed, each on goroutines that have returned when Run returns. What is
// passed in Config (volumes, a sink with a queue, an allocation.Manager) is run by
// the caller. Sources are run by Run.
//
// # Guarantees and limits
//
//   - New starts nothing, opens nothing and calls neither the runtime nor a source.
//   - An agent that stops or is killed leaves the pods running. The next agent
//     takes them over from what the runtime reports, and what the sources specify.
//   - A part whose Run fails stops the agent: Run returns its error after the
//     other parts have returned.
//   - The status of a pod is delivered at least once, in order. Statuses that are
//     not delivered when Run returns are computed again by the next agent.
//   - Drain does not depend on sources, which may be unreachable. It requires a
//     runtime that lists its pods.
//
// # Differences from the kubelet
//
// The parts list theirs. There is no node object, no lease, no API and no
// configuration file here, and neither eviction nor image garbage collection: they
// are parts of their own, added to an agent by its methods.
//
// # Testing
//
// With runtimetest.Runtime an agent runs in a testing/synctest bubble. Package sim
// tests an agent against random faults in virtual time.
//
// # Stability
//
// Experimental: expect it to change.
package agent
