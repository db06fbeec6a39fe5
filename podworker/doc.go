// Package podworker gives each pod one life, and keeps the set of lives true to
// the set of pods that are wanted.
//
// # What it decides
//
// When which method of a [Handler] is called for which pod: that calls for one
// pod never overlap, that terminating is irreversible, how much grace is left,
// who waits for whom, and when to try again. It does not know what a call does;
// [Pipeline] is a Handler that takes a pod through the subsystems of a node.
//
//	sources ─Add/Update/RemovePods─▶ Loop ─Update, Remove─▶ Workers ─Sync, Terminate, Cleanup─▶ Handler
//	pleg ────PodChanged──▶ Inbox ──▶ Loop ─KillOrphan─────▶    ▲
//	eviction ─Kill, KillAndWait────────────────────────────────┘
//
// A pod's life is a value, and step, a pure function, says what becomes of it
// when something happens, and what is to be done; see [State] for the diagram.
//
// # Usage
//
// Make an [Inbox], and give its PodChanged to pleg; [Workers] from a Handler and
// pleg; a [Loop] from the Workers and the Inbox; hand the Loop to the sources,
// and Run it. Everything the Loop and the Workers are told is taken in without
// blocking; the work is done on goroutines of Run. Agents that keep the set of
// pods themselves use the Workers alone.
//
// [Workers.Explain] says of each pod why it is where it is, what it waits for,
// since when, and what comes next.
//
// # Concurrency
//
// All methods of Workers, Loop, Inbox and Pipeline may be called from any
// goroutine. Calls of the Handler for different pods run in parallel, those for
// one pod one after the other; each sees a status that was observed after the last one
// that did something had returned (pw-36), so that a pod at rest is not inspected
// for its resyncs (L-14). A pod that has nothing to do costs a map entry and a
// timer, no goroutine. Housekeeping has a goroutine of its own and takes one pod
// at a time; sources and events don't wait for it.
//
// # Guarantees and limits
//
//   - No Sync begins for a pod after its State was seen at Terminating (inv-1).
//   - Of the static pods that share a name at most one is past Waiting (inv-3).
//     One that an earlier agent left running under that name is ended first,
//     where the Loop is told what the runtime holds. Where two sources want
//     different pods of one name, the second may run on from an earlier agent
//     until its turn comes.
//   - The grace given to consecutive Terminate calls never grows (inv-4).
//   - Every Kill has an [Outcome]: stopped, already stopped, never started, not
//     known, or abandoned because Run ended first (L-21). KillAndWait returns nil
//     only for the first three, in which nothing of the pod runs.
//   - Of several updates that arrive during a call the last one counts.
//   - What nobody wants is ended only when the source that might want it has
//     spoken: that of which the runtime tells the source by that one, else all.
//   - With Config.Parallel, pods take turns in the order they became due, and a
//     call that lasts longer than Config.Slow gives its place away: one that hangs
//     holds up its own pod only.
//   - There are never more calls, and goroutines, than pods: a thousand pods that
//     hang are a thousand goroutines, and those that don't hang come to their
//     turn beside them.
//   - A Handler that panics fails that call (L-26).
//   - When Run ends, containers go on running: a later agent takes them over
//     from what the runtime shows.
//   - Mirror pods, the API server's copies of static pods, are never run.
//
// A Handler that ignores its context holds up its own pod, and the end of Run;
// nothing else.
//
// # Differences from the kubelet
//
// A delay that was named to the moment (a back-off, a deadline) is kept without
// jitter and without a tick to wait for (lq-9, lq-10). Work that failed because the
// runtime did not answer is tried again after 1, 2, 4 … s, and so is a collection
// of garbage that failed, after 5 s; what was removed from the API while the node
// was away is collected as soon as all sources have spoken. A shorter grace period
// reaches a stop that is in progress (lq-8). A grace of zero is a value (lq-7). The
// caller of Kill always receives its outcome (lq-6). A static pod starts as soon as
// the one it waits for has finished, not at a retry (pw-30). One that is told to
// end before its turn is stopped if an earlier agent left something of it running,
// and if it is killed its status says so (pw-31). Finding orphans uses pleg's list
// instead of one of its own, when something changed instead of every 2 s (lq-11),
// and waits for the source of the pod only (lq-30). Orphans have the grace period
// that the runtime recorded, until a Kill passes another (lq-33). Pods that run
// already are not admitted anew, unless PipelineConfig.Readmit says so (lq-28).
// What an evicted pod has, its cgroup, its CPUs, its logs, is its own until nothing
// of it runs; the kubelet lets go at the kill (section 2.2). A refusal may be "not
// yet" (L-61). A pod that isn't static is started, and then stopped, even if its
// deletion arrives first: what an earlier agent left of it ends that way. A pod
// that was resized is looked at again at once, and synced (al-20). There is no loop
// that pauses while the runtime is down: the calls fail, each pod's on its own.
//
// # Testing
//
// All states of a life are visited by a model of the world around it, and held
// against the laws. Workers run in a testing/synctest bubble; testdata holds
// scenarios as text, one command or call per line.
//
// # Stability
//
// Settled: a change that breaks a caller is announced a minor version before it.
package podworker
