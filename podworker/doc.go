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
//	pleg ────PodChanged────────────▶ Loop ─KillOrphan─────▶    ▲
//	eviction ─Kill─────────────────────────────────────────────┘
//
// # Usage
//
// Make [Workers] from a Handler, a [Loop] from the Workers, hand the Loop to the
// sources and its PodChanged to pleg, and Run the Loop. Everything the Loop and
// the Workers are told is taken in without blocking; the work is done on
// goroutines of Run. Agents that keep the set of pods themselves use the Workers
// alone.
//
// # Concurrency
//
// All methods of Workers, Loop and Pipeline may be called from any goroutine.
// Calls of the Handler for different pods run in parallel, those for one pod one
// after the other; each sees a status that was observed after the one before
// had returned. A pod that has nothing to do costs a map entry and a timer, no
// goroutine.
//
// # Guarantees and limits
//
//   - No Sync begins for a pod after its State was seen at Terminating (inv-1).
//   - Of the static pods that share a name at most one is past Waiting (inv-3).
//     One that an earlier agent left running under that name is ended first,
//     where the Loop is told what the runtime holds.
//   - The grace given to consecutive Terminate calls never grows (inv-4).
//   - The channel of Kill is closed in every case: stopped, was stopped already,
//     never started, unknown.
//   - Of several updates that arrive during a call the last one counts.
//   - Until every source has synced, nothing unknown is ended or removed.
//   - When Run ends, containers go on running: a later agent takes them over
//     from what the runtime shows.
//
// A Handler that ignores its context holds up its own pod, and the end of Run;
// nothing else.
//
// # Differences from the kubelet
//
// A delay that was named to the moment (a back-off, a deadline) is kept without
// jitter and without a tick to wait for (lq-9, lq-10). A shorter grace period
// reaches a stop that is in progress (lq-8). A grace of zero is a value (lq-7).
// The waiter of a kill always hears of its end (lq-6). A static pod starts as
// soon as the one it waits for has finished, not at a retry (pw-30). Finding
// orphans uses pleg's list instead of one of its own, when something changed
// instead of every 2 s (lq-11). Pods that run already are not admitted anew
// (lq-28). A pod that isn't static is started, and then stopped, even if its
// deletion arrives first: what an earlier agent left of it ends that way. A pod
// that was resized is looked at again at once, and synced (al-20).
//
// # Testing
//
// Workers run in a testing/synctest bubble; testdata holds scenarios as text,
// one command or call per line.
package podworker
