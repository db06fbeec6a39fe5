// Package agent connects the components of kubeparts to a node agent: it runs the pods
// that its sources specify on its runtime, and delivers their statuses to its sink.
//
// # Behavior
//
// The package decides nothing about pods. It constructs, connects, runs and stops the
// components, which make and document all decisions.
//
//	Sources ─▶ podsource.Merge ─▶ podworker.Loop ─▶ Workers ─▶ Pipeline ─▶ Runtime
//	                                   ▲                          │ status.Manager ─▶ Sink
//	                 podworker.Table ──┘                          │ prober.Manager
//	                   ▲         ▲                                └ Admitters, Volumes, Cgroups, …
//	        pleg.Generator    prober.Manager
//
// The components are constructed in the order of their dependencies, and none is
// changed afterwards. The podworker.Table comes first: it holds the desired pods and the states
// of their workers, and carries notifications of changed pods from pleg and prober to the Loop.
//
// When a pod is gone, every part that has state for it is called with podworker.Retainer, in a
// fixed order that begins with its probes and containers and ends with its cgroup, and again
// after an error. Config.Retainers are parts of the caller.
//
// # Usage
//
// The package example constructs an agent with a runtime, a source and a sink, and runs it.
// [Agent.Run] blocks; if its context is done the agent stops and the pods keep running.
// [Agent.Drain], called from another goroutine, terminates all pods.
//
// A part may be wrapped; see package compose. Everything else in [Config] is optional. A nil field of
// [Subsystems] leaves that subsystem out. [Agent.Kill] evicts a pod, [Agent.Snapshot] returns why a pod is
// not running, and other methods return components, such as [Agent.Status]. Functions that are appended to
// Config.Adjust change the configuration of a single component: its periods, limits and hooks.
//
// An agent that needs other connections constructs the components itself.
//
// # Concurrency
//
// All methods of Agent are safe for concurrent use. Run runs the components that
// New constructed, each on goroutines that have returned when Run returns. What is
// passed in Config (volumes, a sink with a queue, an allocation.Manager) is run by
// the caller. Sources are run by Run.
//
// # Guarantees and limits
//
//   - New starts nothing, opens nothing and calls neither the runtime nor a source.
//   - An agent that stops or is killed leaves the pods running. The next agent
//     takes them over according to the runtime and the sources.
//   - A component whose Run fails stops the agent: Run returns its error after
//     the other components have returned.
//   - The status of a pod is delivered at least once, in order. Statuses that are
//     not delivered when Run returns are computed again by the next agent.
//   - Drain does not depend on sources, which may be unreachable. It requires a
//     runtime that lists its pods.
//
// # Differences from the kubelet
//
// The components document theirs. There is no node object, no lease, no API and no
// configuration file here, and neither eviction nor image garbage collection: they
// are packages of their own, which use the methods of an agent.
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
