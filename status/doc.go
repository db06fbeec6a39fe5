// Package status says how pods are: it makes a v1.PodStatus from facts, and
// sees that the last one of each pod reaches a sink.
//
// # What it decides
//
// [Compute] is a pure function from [Facts] (the pod, what the runtime shows,
// what was said before, why containers do not start, the agent's own word) to
// a status. Its parts are exported, each one file:
//
//	ContainerStatuses   what each container does, and how it ended before
//	Phase               Pending, Running, Succeeded, Failed: a decision table
//	Conditions          Ready and its kin, beside the conditions of others
//	PodIPs, QOSClass    which addresses, which class
//	Terminate           the last word on a pod that has stopped
//	CheckTransition     what may not be said after what was said
//	Held, Hold          whether a terminal phase has to wait, and what is said meanwhile
//	Same                whether a status says anything new
//	Merge               what to write over what others have written
//	Describe, Summary   a change, and a status, in words
//
// A [Manager] decides when a status goes to a [StatusSink]: at once when it
// says something new, in order for one pod, in parallel for many, again after
// a failure, and again when somebody else wrote over it. What others act on goes
// first (L-38). [MemorySink], [JSONLines], [Snapshot] and [Tee] are sinks.
//
// # Usage
//
//	m, err := status.New(status.Config{Sink: sink})
//	go m.Run(ctx)                                    // delivers
//	s := m.Report(pod, observed, starts, ending)     // after each look at a pod
//	m.Finish(pod)                                    // nothing runs, all given back
//	m.Forget(pod)                                    // left its source
//	m.Reconcile(pod)                                 // its record shows pod.Status now
//	o, ok := m.Outstanding(uid)                      // what the sink is yet to be told, and why
//	err = m.Flush(shutdown)                          // the last thing an agent does
//
// Only [Compute] is needed by those who deliver statuses their own way.
//
// # Concurrency
//
// Functions are pure and may be called from anywhere. The methods of a Manager
// may be called at any time; Report, Finish and Forget of one pod come one
// after the other, as package podworker sees to. They never wait for the sink.
// A pod costs no goroutine and no timer; a call of the sink has a goroutine
// while it lasts, Config.Parallel of them at most.
//
// # Guarantees and limits
//
// For one pod, calls of the sink never overlap, and come in the order of its
// reports. Reports that come while a call is under way, or while a failed one
// waits to be repeated, make one more call, with the last of them (L-39).
// Delivery is at least once; the last status of a pod is never lost, also when
// the pod is forgotten or comes back under its UID meanwhile, but it does not
// outlive the process: after a restart the next report says all again.
//
// What was said stands: a terminal phase is never left (inv-7), a restart count
// never drops (inv-10), the exit of an instance keeps the code it was first
// seen with, even when the runtime has thrown the container away (L-40). A
// terminal phase is not said while something of the pod runs (inv-6), and never
// together with Ready (inv-8). DeletePod comes after the final status (inv-9).
// These hold across a restart of the agent as far as the source gives back, in
// pod.Status, what was said, or else a [Snapshot] does.
//
// What somebody else writes over a status is mended, a second later at first, and
// with growing pauses when it does not last: a pod costs a call in ten minutes at
// most then (st-71). Someone has to say what the record shows (Reconcile): a source
// whose sets have the pods' statuses, through podsource.Merge and podworker.Loop.
//
// Without a prober (Facts.Probes is nil) every probe counts as passed: a pod
// that declares probes nobody runs is as ready as its containers run.
//
// Resources are shown of containers that have an instance (st-15): what was
// granted, which is what the spec in Facts.Pod has, and what the runtime was
// last given. A container that nothing was granted and that has nothing shows no
// resources, where the kubelet shows empty ones.
//
// Readiness reaches a status by a report, not by a call of its own (st-55, st-56):
// who probes has the pod reported when a result changes.
//
// # Differences from the kubelet
//
//   - stopSignal is what the runtime says, without a gate (the kubelet's
//     ContainerStopSignals is alpha); of one that does not say, there is none.
//   - Statuses of different pods are written in parallel, and a slow or failing
//     pod does not hold up the others (st-72, lq-19). A failed write is
//     repeated after a back-off of its own, not at the next tick of 10s.
//   - A report that says nothing new is never written, also for a pod that is
//     being deleted (st-48 forces one); finishing a pod that has said all is no
//     second write (lq-20).
//   - Exits are written once (L-40). A container that is lost and found again
//     takes its true exit in place of ContainerStatusUnknown.
//   - Until a probe has a result, what was said of the same instance stands,
//     for readiness as for startup; an agent's restart takes no pod out of
//     service, and puts none back (L-42 against st-18, st-19).
//   - A running instance of a container counts before a newer one that exited
//     (lq-12). An init container that is gone counts as done only if regular
//     containers were created in the same sandbox (L-48 against st-8).
//   - A container that vanished and waits counts as restartable by its policy,
//     with the exit code that was assumed; so a pod that never restarts fails.
//   - Init containers that succeeded may run again in a new sandbox, whatever
//     the policy, unless that is Never (st-50 refuses that for OnFailure).
//   - The start time of a pod that an earlier agent started, and nobody wrote
//     down, is that of its oldest sandbox (against st-52): a deadline goes on.
//   - A pod starts over (AllContainersRestarting, rt-139) as long as the runtime
//     shows an exit of its newest sandbox that asks for it, and a container that
//     never ran has no end made up for it meanwhile (rt-142).
//   - A container that runs again though it had exited for good, because the
//     runtime lost its memory of it, does not keep the rest of the status from
//     being said: only its own end stands (st-50 drops the whole update, for as
//     long as that container runs). When the others are over the pod is, and the
//     agent ends it.
//   - Messages are cut between characters, not inside them.
//   - A pod that was turned away has no container statuses made up.
//   - Nobody's input is changed (lq-22).
//   - HostIPsIPFamilyMismatch (st-44) is not announced.
//
// # Testing
//
// The rules of the kubelet are tables named by rule. testdata/*.txt holds whole
// lives of pods, a line of facts and a line of status in turn; -update rewrites
// the results. Random facts and random lives check the laws and print their
// seed. The manager is tested in synctest bubbles.
//
// # Stability
//
// Settled: a change that breaks a caller is announced a minor version before it.
package status
