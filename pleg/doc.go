// Package pleg finds out what changed on the node: it is the pod lifecycle
// event generator, usable over any [runtime.Lister].
//
// # What it decides
//
// Whether a pod is different from what was last known of it, and whether what
// is known is fresh enough. A [Generator] lists the runtime, each second or, as
// long as hints make up for it, each few minutes; compares each pod with its
// record, inspects the pods that differ, keeps the answers in a cache and tells
// a function which containers started, died or went. It alone writes the
// cache, and it believes nothing but its own reads: a hint from a
// [runtime.Watcher], or a request by a caller, only makes it look at that one
// pod earlier.
//
// What to do about a change is not its business: that is podworker's.
//
// # Usage
//
//	inbox := new(podworker.Inbox) // of the podworker.Loop
//	gen, err := pleg.New(pleg.Config{Runtime: rt, Handle: func(e pleg.Event) { inbox.PodChanged(e.UID) }})
//	err = gen.Run(ctx) // until ctx is done
//
// Workers read statuses that are newer than their last call for the pod:
//
//	status, err := gen.GetNewerThan(ctx, uid, time.Now())
//
// The example Podworker connects a Generator and a podworker.Loop.
//
// [Generator.Follow] tells a second listener, and a third. [Generator.Pin]
// keeps a pod from being read over and over while it is being worked on.
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
// A time that was read before the wall clock was set is as good as one read
// after it: freshness, periods and health go by the monotonic clock.
//
// # Hints
//
// A list costs the runtime work for every pod, and finds a change half a period
// late on average; a hint costs nothing and comes at once. So, once the stream of
// hints holds, the time between lists doubles with each list that finds nothing
// new, from Config.Period to Config.MaxPeriod. It begins with Config.Period
// whenever the stream is opened.
//
// A stream of hints that is open may announce nothing, or not all. Every change
// that is found, by a list, a request or a caller's wait, is compared with the
// hints. If none has announced it, and none comes within a Period, or within 30 s
// while other hints keep coming, lists are a Period apart again, the first at once,
// until hints have announced the changes that are found: each time twice as many as
// the time before. A stream that has said nothing at all
// for half a minute by then is opened again. A stream that breaks costs its speed
// only: there is a list at once, then one each Period, and it is opened again
// after 1 s, 2 s, up to 30 s, for ever. Hence a hint that is lost delays one
// change, by MaxPeriod at worst, and not the next ones.
//
// Hints may come too early: one of which nothing came is followed by a list
// within a Period. What is tried again after a list elsewhere, the inspections
// that failed, is tried again after a Period here, however far apart lists are.
//
// [RelistInfo] and [Health] tell what the hints are worth ([HintState]).
//
// # Events
//
// Events are not queued. A record holds the pod as it was last inspected, a
// listener has the pod as he was last told, and the events are the difference
// of the two at the time they are delivered. Hence nothing is ever dropped, whatever
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
// All methods may be called from many goroutines, Handle included. Run can be
// called once; it and Relist, or two Relists, must not overlap, which is an
// error. Handle is called on the goroutine of that Run or Relist, one event at
// a time. Lists, inspections and the cache go on while Handle blocks, so that
// Handle may call GetNewerThan under Run (under Relist, which does one thing
// after the other, it may not).
//
// # Guarantees and limits
//
//   - For every change there is an event within a period plus the time that
//     one list and one inspection take (inv-12), with a hint or a request at
//     once. The period is Config.Period, or what Health says while hints are
//     trusted.
//   - Memory is bounded by the pods there are, and for each listener by the pods
//     that it knows or is owed. Questions about pods that are not there leave
//     nothing behind.
//   - No pod has a goroutine: there are those of Run, and one for each
//     inspection under way.
//   - At most Config.Parallel inspections run at a time, each with a deadline
//     of its own; one that hangs delays no other pod, no list and not the
//     health (L-2). Pods whose last inspection timed out share half of the
//     places, so that no number of them stops the rest.
//   - No pod is inspected before the first list: whoever has waited for the
//     status of one can rely on Pods.
//   - A Lister or Watcher that ignores the end of its context can hold Run up
//     when it should return, and keeps its place for as long.
//   - Statuses and records are shared between all who ask: read them, do not
//     change them.
//
// # Differences from the kubelet
//
//   - Changed pods are inspected in parallel (lq-3, pleg-17), and the next list
//     does not wait for them (pleg-14). The period counts from the end of a
//     list. There is no single worker whose choice has an order (pleg-12):
//     lists, inspections, hints and delivery go on side by side.
//   - Start, Stop and Update are Run and its context (pleg-11): to change a
//     period is to make another Generator.
//   - There is no event channel to overflow (lq-1, pleg-21), and hence no
//     health that depends on one (pleg-42). Any number of listeners may follow
//     (pleg-9).
//   - GetNewerThan takes a context (lq-2, cache-4) and asks for the read that it
//     waits for, instead of waiting for the next relist (L-11). An error in the
//     cache never answers a new call. Who waits for a pod is also woken when it
//     is gone (cache-8).
//   - There is one cache with one writer and no second for running pods:
//     PodsNewerThan is what that is for (cache-10).
//   - Requests for one pod are merged and never refused (pleg-28), and one that
//     finds the pod gone says so (pleg-31). They inspect; nothing is listed for
//     them (pleg-30).
//   - ContainerChanged is delivered (the kubelet computes it and keeps it to
//     itself, pleg-6), and "created" is told apart from "unknown" (pleg-1), so
//     that Handle hears of every state. Handlers that want the kubelet's way
//     leave that type out.
//   - There is one generator and not two that write the same cache (pleg-33).
//     Hints have no timestamps and are not believed (pleg-36 … pleg-40); nothing
//     counts as fresh that was not read (lq-5, pleg-41). Their stream is opened
//     again for as long as Run runs (lq-4, pleg-34, pleg-35), and what lists do
//     meanwhile depends on what hints have done, not on an option.
//   - Only a list that does not succeed makes Healthy fail (L-3). What is to
//     stop because of it, and with which words ("PLEG is not healthy: …",
//     pleg-26), is up to who asks.
//
// # Testing
//
// Everything runs in a testing/synctest bubble: a request is served in the
// virtual instant in which it is made. Relist needs no loop and no time.
//
// # Stability
//
// Settled: a change that breaks a caller is announced a minor version before it.
package pleg
