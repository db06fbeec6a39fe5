// Package pleg detects changes of the pods on a node: it is the pod lifecycle event generator,
// for any [runtime.Lister].
//
// # Behavior
//
// The package decides whether a pod differs from its last observed state, and whether that state is recent enough.
// A [Generator] lists the runtime, each second or, while events of the runtime announce all
// changes, every few minutes. It compares each pod with its record, inspects the pods that
// differ, caches their statuses and calls a function for containers that started, died or were
// removed. Only its own reads change the cache: an event of a [runtime.Watcher], or a request by
// a caller, only causes an earlier inspection of that pod, which the runtime may answer with the
// status in its last event ([runtime.AllowAnnounced]).
//
// What to do about a change is decided by podworker.
//
// # Usage
//
// The package example runs a Generator. The example Podworker connects one to
// podworker.Workers, which read statuses that are newer than their last call for a pod with
// [Generator.GetNewerThan].
//
// [Generator.Follow] delivers the events to further listeners. [Generator.Pin] collects the
// changes of a pod while the caller changes it. [Generator.Relist] is the synchronous step of
// Run, for callers with a loop of their own and for tests.
//
// # Freshness
//
// Each read of the runtime has a number and a time, both taken before the read begins. The
// state of each pod has those of the read that it stems from, and an older read never replaces a
// newer one. A list that shows a pod as it was last inspected confirms the inspection: the
// status is then as recent as that list. What lists do not contain, such as resources after a
// resize, is only read again after [Generator.RequestReinspect].
//
// Freshness, periods and health use the monotonic clock, so that setting the wall clock does not
// affect them.
//
// # Events of the runtime
//
// A list costs the runtime work for every pod and detects a change half a period late on
// average; an event costs nothing and comes at once. While the event stream is open, the runtime
// is therefore listed each Config.MaxPeriod, from the first list on that began with the stream
// open, and 30 s after a change, so that each bulk of changes is followed by a list. An idle node
// has no events, and does not need any.
//
// An open stream may announce no changes, or not all of them. Every change that a list, a
// request or GetNewerThan finds is compared with the events. If no event announced it, and none
// arrives within 5 s, or within 30 s while other events arrive, the event confidence is lost:
// the runtime is listed at once and then each Period, until events have announced two changes,
// or there was no change for MaxPeriod. Both double with each further missed change. A stream
// without any event for half a minute by then is opened again. If a stream breaks, the runtime
// is listed at once and then each Period, and the stream is opened again after 1 s, 2 s, up to
// 30 s. A lost event therefore delays one change, by MaxPeriod at most, or by 30 s if it is one
// of several changes, and not the following ones.
//
// While the events are trusted, an inspection that an event or a request causes may be answered
// with an announced status. It has all changes that the node's own calls made and that events
// announced, so that one that a caller of GetNewerThan waits for is at most too old for a change
// whose event was lost. Differences to a list, failed inspections and RequestReinspect need a
// read, and so does every inspection during a list and while events are not trusted.
//
// Events may arrive before the change is visible: one without a visible change is followed by a
// list within a Period. A failed inspection is retried after a Period, whatever the period of
// lists.
//
// [RelistInfo] and [RelistHealth] contain the event confidence.
//
// # Delivery
//
// Events are not queued. A record has the pod as last inspected, a listener the pod as last
// delivered, and the events are the difference at the time of delivery. Nothing is dropped if a
// handler is slow, and memory is bounded by the number of pods: a slow handler gets fewer events,
// which lead to the same state. A container that started and died between two inspections is
// reported as died only.
//
//   - Events of one pod are ordered; within one comparison, removed containers precede those that
//     died, changed and started.
//   - When Handle is called with an event, [Generator.Get] returns the inspection that the event
//     stems from, or a later one.
//   - The removal of a pod is reported without an inspection.
//   - While a pod cannot be inspected its events are pending, and Get returns the error; they
//     are delivered after the first successful inspection.
//   - The first read after New reports everything: all containers have started, or died.
//
// # Concurrency
//
// All methods are safe for concurrent use, also by Handle. Run can be called once; it and Relist,
// or two Relists, must not overlap, which is an error. Handle is called on the goroutine of Run
// or Relist, one event at a time. Lists, inspections and the cache continue while Handle blocks,
// so that Handle may call GetNewerThan under Run. Under Relist, which is sequential, it must
// not.
//
// # Guarantees and limits
//
//   - Each change is delivered within one period plus the duration of one list and one
//     inspection; with an event of the runtime or a request, without waiting for the period. The
//     period is Config.Period, or Config.MaxPeriod while events are trusted: that is how long a
//     lost event delays a change at most.
//   - Memory is bounded by the existing pods, and for each listener by the pods that were or will
//     be delivered to it. Calls for pods that do not exist leave nothing behind.
//   - Pods have no goroutines; Run has a fixed number, and each inspection in progress has one.
//   - At most Config.Parallel inspections run at a time, each with its own deadline. One that
//     hangs delays no other pod, no list and not Healthy. Pods whose last inspection timed out
//     share half of the inspections, so that they cannot block the others.
//   - No pod is inspected before the first list, so Pods is valid once GetNewerThan has returned
//     a status.
//   - A Lister or Watcher that ignores its context blocks the return of Run, and an inspection
//     that does so remains in progress.
//   - Statuses and records are shared and must not be changed.
//
// # Differences from the kubelet
//
//   - Changed pods are inspected in parallel, and the next list does not wait for them. The
//     period counts from the end of a list. Lists, inspections, events and delivery run
//     concurrently.
//   - Run and its context replace Start, Stop and Update; another period requires another
//     Generator.
//   - There is no event channel that can overflow, and Healthy does not depend on one. Any number
//     of listeners may follow.
//   - GetNewerThan has a context and requests the read that it waits for, instead of waiting for
//     the next relist. A cached error is not returned to a new call. A caller that waits for a
//     pod is also woken when the pod is removed.
//   - There is one cache with one writer, and none for running pods: PodsNewerThan replaces it.
//   - Requests for one pod are merged and never rejected. They cause an inspection and no list.
//     One for a pod that does not exist is answered with an empty status.
//   - ContainerChanged is delivered, and "created" is distinguished from "unknown".
//   - There is one generator instead of two that write the same cache. Events of the runtime have
//     no timestamps and only cause inspections; the runtime, not the time of an event, decides
//     whether its status is as recent as a read. Their stream
//     is opened again until Run returns, and the period depends on the events, not on an
//     option.
//   - Only failing lists make Healthy fail. The caller decides what stops because of it, and
//     adds "PLEG is not healthy".
//
// # Testing
//
// Everything runs in a testing/synctest bubble: a request is served in the virtual instant in
// which it is made, or 5 ms after the end of a pin. Relist needs no loop and no time.
//
// # Stability
//
// Settled: a change that breaks a caller is announced a minor version before it.
package pleg
