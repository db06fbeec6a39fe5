// Package pleg finds out what changed on the node: it is the pod lifecycle
// event generator, usable over any [runtime.Lister].
//
// # What it decides
//
// Whether a pod is different from what was last known of it, and whether what
// is known is fresh enough. A [Generator] lists the runtime about once a
// second, compares each pod with its record, inspects the pods that differ,
// keeps the answers in a cache and tells a function which containers started,
// died or went. It alone writes the cache, and it believes nothing but its own
// reads: a hint from a [runtime.Watcher], or a request by a caller, only makes
// it look at that one pod earlier.
//
// What to do about a change is not its business: that is podworker's.
//
// # Usage
//
//	gen, err := pleg.New(pleg.Config{Runtime: rt, Handle: loop.HandleEvent})
//	err = gen.Run(ctx) // until ctx ends
//
// and in the workers, which need to see the effect of what they just did:
//
//	status, err := gen.GetNewerThan(ctx, uid, time.Now())
//
// [Generator.Relist] is the same step without a loop, for those who bring their
// own, and for tests.
//
// # Freshness
//
// Each read of the runtime is a look: a number and a time, both taken before
// the read begins (pleg-13). What is known of a pod carries the look it stems
// from, pod by pod; no clock advances without a read (lq-5), and what an older
// look shows never replaces what a newer one showed. A list that shows a pod
// as it was last inspected confirms the inspection: the status then is as
// fresh as that list. What lists do not show (resources after a resize, say)
// is read again on [Generator.RequestReinspect] only.
//
// # Events
//
// Events are not queued. A record holds the pod as it was last inspected and
// the pod as Handle was last told, and the events are the difference of the
// two at the time they are delivered. Hence nothing is ever dropped, whatever
// a slow handler does (lq-1), and memory is bounded by the number of pods: a
// handler that is late gets fewer events which end in the same state. A
// container that started and died between two looks is told as died only.
//
//   - Events of one pod come in order; within one comparison, containers that
//     are gone come first, then those that died, changed and started.
//   - When Handle gets an event, [Generator.Get] answers with the inspection
//     that the event stems from, or a later one.
//   - A pod of which nothing is left is told without an inspection (pleg-18).
//   - While a pod cannot be inspected its events wait, and Get has the error;
//     they come with the first good inspection (pleg-19).
//   - The first look after New tells all there is: everything has started, or
//     died, since nothing was known.
//
// # Concurrency
//
// All methods may be called from many goroutines, Handle included. One of Run
// and Relist runs at a time; a second is refused. Handle is called on the
// goroutine of that Run or Relist, one event at a time. Lists, inspections and
// the cache go on while Handle blocks, so that Handle may call GetNewerThan
// under Run (under Relist, which does one thing after the other, it may not).
//
// # Guarantees and limits
//
//   - For every change there is an event within a period plus the time that
//     one list and one inspection take (inv-12), with a hint or a request at
//     once.
//   - At most Config.Parallel inspections run at a time, each with a deadline
//     of its own; one that hangs delays no other pod, no list and not the
//     health (L-2). Pods whose last inspection timed out share half of the
//     places, so that no number of them stops the rest.
//   - No pod is inspected before the first list: whoever has waited for the
//     status of one can rely on Pods.
//   - A Lister that ignores the end of its context can hold Run up when it
//     should return, and keeps its place for as long.
//   - Statuses and records are shared between all who ask: read them, do not
//     change them.
//
// # Differences from the kubelet
//
//   - Changed pods are inspected in parallel, and the next list does not wait
//     for them (lq-3, pleg-14). The period counts from the end of a list.
//   - There is no event channel to overflow (lq-1, pleg-21).
//   - GetNewerThan takes a context (lq-2) and asks for the read that it waits
//     for, instead of waiting for the next relist (L-11). An error in the
//     cache never answers a new call.
//   - Requests for one pod are merged and never refused (pleg-28), and one that
//     finds the pod gone says so (pleg-31).
//   - ContainerChanged is delivered (the kubelet computes it and keeps it to
//     itself, pleg-6), and "created" is told apart from "unknown" (pleg-1), so
//     that Handle hears of every state. Handlers that want the kubelet's way
//     leave that type out.
//   - Hints have no timestamps and are not believed (pleg-33 … pleg-42), their
//     stream is opened again for as long as Run runs (lq-4), and lists go on
//     at the plain period meanwhile.
//   - Only a list that does not succeed makes Healthy fail (L-3).
//
// # Testing
//
// Everything runs in a testing/synctest bubble: a request is served in the
// virtual instant in which it is made. Relist needs no loop and no time.
package pleg
