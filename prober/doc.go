// Package prober runs the liveness, readiness and startup probes of pods, over
// any runtime.
//
// # What it decides
//
// Whether a container is well, serves, and has started: it runs each probe of
// the spec at its times, has thresholds decide when that amounts to a result,
// and keeps the results, by container ID, for others to read. What follows from
// one is not its business. The runtime restarts a container whose liveness or
// startup probe has failed ([Manager.Results] goes into
// runtime.SyncRequest.Probes); status makes a container ready
// ([Manager.Containers]).
//
// How a probe is carried out is the business of a [Handler]. [Exec], [HTTPGet]
// and [TCPSocket] are those of the API; the one for gRPC is in the package
// grpcprobe, because of its weight. Any other will do.
//
// # Usage
//
// In an agent of this module's parts:
//
//	probes, err := prober.New(prober.Config{
//		Handlers: prober.Handlers{Exec: prober.Exec{Runtime: rt}, HTTPGet: prober.HTTPGet{}},
//		Status:   changes.Get, // of pleg
//		Changed: func(c prober.Change) {
//			if c.Matters() {
//				inbox.PodChanged(c.UID) // it is to be synced
//			}
//		},
//		Record: record,
//	})
//	go probes.Run(ctx)
//
// podworker calls Add at each sync, StopLiveness and Remove when the pod ends.
// In an agent that is made of other things, Add with each change of the pod's
// status is enough: with no Config.Status, it tells which containers run.
//
// # Concurrency
//
// All methods may be called from any goroutine; none but Run and Follow blocks.
// A probe that waits has no goroutine: all share one loop, and one heap of
// timers. A run has a goroutine for as long as it takes, and there are no more
// of them than Config.Parallel. Handlers and hooks are called on these,
// Config.Changed on one of Run's, Config.Status on the loop and on those of
// callers. No lock is held while any of them is called.
//
// # Guarantees and limits
//
//   - A probe runs at most once at a time, at most Config.Parallel do in all, and
//     of those that run commands at most Config.Exec.Parallel. Who has to wait
//     for that is late, in the order in which they were due, and nothing fails
//     because of it.
//   - A result is of one instance of a container. When another takes its place
//     the run under way is called off, and nothing of it counts.
//   - What decides on a restart (liveness and startup) is not run again after
//     that until there is another instance: a container is not failed twice.
//   - Between the first and the last of n runs of a liveness or startup probe lie
//     n-1 periods at the least, jitter or not: no container has less time than
//     its spec gives it.
//   - A new instance is noticed at once if Add or Look is called, else within ten
//     seconds. Look is what pleg's events are for, if not every one of them leads to a
//     sync.
//   - A handler that does not return when its context ends keeps its place, and
//     Run from returning.
//   - The file of Config.File is up to a second old when the agent dies. One that
//     cannot be read, or written, is logged, and nothing fails because of it.
//   - A probe takes 740 bytes or so, and the outputs of its last failures. At
//     many probes a second, runs begin in bundles, five milliseconds apart.
//
// # Differences from the kubelet
//
//   - A probe is no goroutine with a ticker, but an entry in a heap (F-02).
//   - Add takes changes of the spec in: probes that are new begin, those that
//     are gone end, and others go on by their new times with the counters they
//     had (prober-4, prober-5).
//   - The spread is per instance of a container, not for what is added within a
//     period of the start (prober-6): readiness is run as soon as the container
//     runs and its initial delay is over, and finds its place in the period
//     after that; the other two, and all probes of containers that were there
//     before the agent, find it before. The initial delay counts to the
//     millisecond, not in ticks (prober-19). There is jitter (prober-7).
//   - When the startup probe has passed the others begin at once, not at their
//     next tick (prober-20).
//   - A pod that is Succeeded or Failed, a container that has ended for good and
//     one that is deleted end their probes (prober-12, prober-16, prober-18); but
//     should another instance be started, it is probed. By whom a container is
//     restarted is its own policy, its rules, then the pod's (prober-17).
//   - The counters start over with an instance (prober-22): the last success of
//     the one before does not count for the next.
//   - Results from before a restart of the agent hold until there are others, out
//     of a file, or by the status that the pod comes with (prober-70).
//   - Changes are told without a queue that could be full (prober-63).
//   - At the pod's termination liveness and startup probes of sidecars end with
//     those of the other containers (prober-74, lq-21): a container that has to
//     go is not restarted.
//   - A probe with two handlers is an error, not the first of them. Events show
//     the start of an HTTP answer's body (F-08), and the words for errors are
//     those of 1.33 and later (prober-30).
//   - A body that does not come to its end in time is a failure (prober-47), and
//     not an error that is tried again and then passed over (prober-49).
//   - A command that the runtime does not end in time, as containerd does not
//     while a child of it holds its output, is a failure two seconds later if the
//     runtime answers otherwise, and not after two minutes (prober-37). From a
//     runtime that does not answer at all nothing is concluded (prober-38).
//   - A port of an unknown name is an error that names it and the container
//     (prober-42).
//   - Metrics are [Hooks], from which collectors with the kubelet's names and
//     series are made; their registry is up to the caller (prober-77). The
//     Duration of failed runs is told, too (prober-27).
//
// # Testing
//
// Everything runs in a testing/synctest bubble, an hour of a thousand probes in
// a second or so. Config.Rand makes the spread what a test wants. A Handler is one
// method.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package prober
