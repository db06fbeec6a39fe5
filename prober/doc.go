// Package prober runs the liveness, readiness and startup probes of pods, with any runtime.
//
// A [Manager] runs each probe of a pod spec on its schedule, applies the thresholds and stores
// the results by container ID. It does not act on them: the runtime restarts a container whose
// liveness or startup probe has failed ([Manager.Results] is the Probes field of
// runtime.SyncRequest), and package status sets the readiness of containers
// ([Manager.Containers]).
//
// A [Handler] carries out a probe. [Exec], [HTTPGet] and [TCPSocket] are the handlers of the
// API; the gRPC handler is in package grpcprobe because of its dependencies. Other
// implementations may replace them.
//
// # Usage
//
// In an agent with the other packages of this module:
//
//	probes, err := prober.New(prober.Config{
//		Handlers: prober.Handlers{Exec: prober.Exec{Runtime: rt}, HTTPGet: prober.HTTPGet{}},
//		Status:   changes.Get, // of pleg
//		Changed: func(c prober.Change) {
//			if c.NeedsSync() {
//				inbox.PodChanged(c.UID)
//			}
//		},
//		Record: record,
//	})
//	go probes.Run(ctx)
//
// podworker calls Add at each sync, and StopLiveness and Remove when the pod terminates. Other
// agents may call Add with each change of the pod status: if Config.Status is nil, that status
// determines which containers run. The package example is such a program.
//
// # Concurrency
//
// All methods are safe for concurrent use; only Run and Follow block. Waiting probes have no
// goroutine: they share one loop and a heap of timers. An attempt has a goroutine while it
// runs; their number is bounded by Config.Limits. Handlers and hooks are called on these
// goroutines, Config.Changed on one of Run's, Config.Status on the loop and on those of
// callers. No lock is held during these calls.
//
// # Guarantees and limits
//
//   - Attempts of a probe do not overlap; at most Limits.Parallel run at the same time, and at
//     most Limits.ExecParallel of exec probes. Attempts that exceed the limits are delayed, in
//     the order in which they were due, and do not fail.
//   - A result belongs to one instance of a container. When another instance replaces it, the
//     attempt in progress is canceled and has no effect.
//   - After a startup probe has a result or a liveness probe has failed, it is not run again
//     until there is another instance: a container does not fail twice.
//   - Between the first and the last of n attempts of a liveness or startup probe are at least
//     n-1 periods, with or without jitter.
//   - A new instance is detected immediately if Add or Inspect is called, otherwise within ten
//     seconds. Call Inspect for pleg events that do not all lead to a sync.
//   - A handler that does not return after its context is done keeps its place in the limits
//     and prevents Run from returning.
//   - The file of Config.Path is up to a second old when the agent crashes. If it cannot be
//     read or written, that is logged, and no probe fails.
//   - A probe takes about 740 bytes, and the output of its last failures. At many probes per
//     second, attempts start in groups every five milliseconds.
//
// # Differences from the kubelet
//
//   - A probe is an entry in a heap and not a goroutine with a ticker.
//   - Add applies changes of the spec: new probes start, removed ones end, and others continue
//     with the new timing and their counters.
//   - First attempts are distributed for each instance of a container, not only after a restart
//     of the agent. Readiness is probed as soon as the initial delay has passed and distributed
//     afterwards; other probes, and those of containers started by an earlier agent, are
//     distributed from the first attempt on. The initial delay has millisecond resolution.
//     Periods have jitter.
//   - When the startup probe has passed, the other probes start immediately.
//   - The probes of a pod that is Succeeded or Failed, of a container that has terminated for
//     good, and of one that is being deleted end; if another instance is started, it is probed.
//     Whether a container restarts is determined by its own policy and rules, then by the
//     pod's.
//   - Counters are reset with each instance.
//   - Results from before a restart of the agent apply until there are new ones; they come from
//     a file or from the pod status.
//   - Changes are delivered without a queue that could overflow.
//   - When a pod terminates, the liveness and startup probes of sidecars end with those of the
//     other containers.
//   - A probe with two handlers is an error. Events contain the beginning of an HTTP response
//     body. Kubernetes 1.33 and later have the same error texts.
//   - A response body that is not complete before the timeout is a failure; in the kubelet it
//     is an error and ignored.
//   - A command that the runtime does not terminate in time, as containerd while a child of the
//     command has its output open, is a failure two seconds later if the runtime responds
//     otherwise; in the kubelet after two minutes. If the runtime does not respond, the
//     attempt is an error.
//   - An unknown port name is an error that has the name and the container.
//   - Metrics are [Hooks], which also report the duration of failed attempts; package
//     kube/metrics has collectors with the kubelet's names.
//
// # Testing
//
// Tests run in a testing/synctest bubble: an hour of a thousand probes takes about a second.
// Schedule.Rand determines the distribution of attempts. A Handler has one method.
//
// # Stability
//
// Growing: a minor version may change the API, and CHANGELOG.md describes how to migrate.
package prober
