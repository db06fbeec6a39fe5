// Package podworker runs one worker for each pod and applies the set of desired pods to the
// workers.
//
// # Behavior
//
// The package decides which method of a [Handler] is called for a pod, and when: calls for one pod never overlap,
// and termination is irreversible. It also determines the grace period, the order of pods
// that depend on each other, and the time of the next attempt. The Handler implements the
// calls; pipeline.Pipeline is a Handler that applies the subsystems of a node to a pod.
//
//	sources ─Add/Update/RemovePods─▶ Loop ─Update, Remove─▶ Workers ─Sync, Terminate, Cleanup─▶ Handler
//	                                  │ ▲    ─orphans────────▶  │ ▲
//	                     desired pods ▼ │ changed pods   states ▼ └─Kill, KillAndWait─ eviction
//	pleg ─PodChanged─▶ Table ─Desired, Running, State─▶ subsystems
//
// The lifecycle of a pod is a value, and a pure function returns the next one for each event;
// see [State] for the diagram.
//
// # Usage
//
// Construct a [Table] and pass it to the subsystems that ask about pods, and its PodChanged to
// pleg; construct [Workers] with the Table, a Handler and pleg; construct a [Loop] with the
// Workers; pass the Loop to the sources, and call its Run. Package agent does so. An agent that
// maintains the set of pods itself uses the Workers alone, as the example of [Workers] does.
//
// The end of a pod is one event for all parts that have state for it: [Retainer].
//
// [Workers.Snapshot] returns the state of a pod's worker, its current step, why that has not
// been completed, and when it is retried.
//
// # Concurrency
//
// All methods of Workers, Loop and Table are safe for concurrent use. The Handler is
// called on goroutines of Run, concurrently for different pods and sequentially for one pod.
// Each call is passed a status that was observed after the last call that may have changed the
// runtime had returned, so that an idle pod is not inspected for each resync. A pod that is not
// due has a map entry and a timer, and no goroutine. Orphans and garbage are handled on
// goroutines of their own, one pod at a time, so that sources and events do not wait for them.
//
// # Guarantees and limits
//
//   - No Sync begins after the pod has reached Terminating.
//   - Of the static pods with the same name at most one is past Waiting. A pod of that name that
//     an earlier agent left running is terminated first, if Config.StatusCache lists it. If two
//     sources specify different pods of the same name, the second may continue to run from
//     an earlier agent until it is first in the queue.
//   - The grace period of consecutive calls of Terminate never grows.
//   - Every Kill has an [Outcome]. KillAndWait returns a nil error only if no container of
//     the pod runs.
//   - If several updates arrive during a call, the last one applies.
//   - An orphaned pod is terminated only after the source that created it has synced, or after
//     all sources if the runtime does not report one that is configured.
//   - With Config.Parallel, pods take turns in the order in which they became due, and a call
//     that takes longer than Config.Slow does not count. One that hangs delays its own pod
//     only.
//   - There are never more calls, and goroutines, than pods: a thousand pods that hang are a
//     thousand goroutines, and do not block other pods.
//   - A Handler that panics fails that call.
//   - When Run returns, containers keep running. The next agent takes them over from the
//     runtime.
//   - Mirror pods are never run.
//
// A Handler that ignores its context blocks its own pod and the return of Run, and no other
// pod.
//
// # Differences from the kubelet
//
//   - Back-offs and deadlines are kept exactly, without jitter or a polling period. A sync in
//     progress is canceled at the pod's deadline, as by a deletion, also if activeDeadlineSeconds
//     is set meanwhile; the kubelet applies the deadline after the sync.
//   - After runtime.ErrUnavailable a pod is retried after 1, 2, 4 … s, and failed garbage
//     collection after 5 s. The containers of pods that were deleted while the node was down
//     are removed as soon as all sources have synced. While every container runs and no pod
//     was removed, garbage is collected every five minutes instead of each minute.
//   - A shorter grace period applies to a termination in progress. A grace period of zero is a
//     value. The caller of Kill always receives an outcome.
//   - A static pod starts as soon as the pod that it waits for has finished, not at a retry. If
//     it is terminated before that, containers that an earlier agent started are stopped; if
//     it is killed, its status contains the reason.
//   - Orphans are found in pleg's relists when something has changed, instead of by a list of
//     their own every 2 s, and only their source has to be synced. They have the grace period
//     that the runtime recorded, until a Kill passes another.
//   - The mirror pod of a static pod that has completed is created again if it is deleted.
//   - Running pods are not admitted again, unless Admission.Readmit is set.
//   - The cgroup, CPUs, devices and logs of an evicted pod are released when no container of it
//     runs; the kubelet releases them at the kill.
//   - A rejection may be deferred: the pod stays Pending and is admitted again.
//   - A pod that is not static is started and terminated even if its deletion arrives first, so
//     that containers of an earlier agent are terminated.
//   - A resized pod is inspected and synced at once.
//   - Syncs are not paused while the runtime is down: the calls of each pod fail.
//
// # Testing
//
// A model of the environment visits all states of a lifecycle and checks the invariants.
// Workers run in a testing/synctest bubble; testdata has scenarios as text, one command or call
// per line.
//
// # Stability
//
// Settled: a change that breaks a caller is announced a minor version before it.
package podworker
