// Package status computes the statuses of pods and delivers them, to an API server for
// example.
//
// [Compute] is a pure function from [Facts] (the pod, its observed state, its previous status,
// the reasons why containers wait) to a v1.PodStatus: container statuses, phase, conditions,
// addresses, quality of service class. [Merge] combines the result with what other writers
// have written to the pod's record; [Describe] and [Summary] format statuses.
//
// A [Manager] delivers statuses to a [StatusSink]: immediately if the status differs from the
// previous one, in order for one pod, in parallel for different pods, again after a failure,
// and again if another writer has changed it. Changes of readiness and terminal phases are
// delivered first. [MemorySink], [Snapshot] and [Tee] are sinks.
//
// # Usage
//
// See [ExampleManager]. In short:
//
//	m, err := status.New(status.Config{Sink: sink})
//	go m.Run(ctx)                                     // delivers
//	s := m.Report(pod, observed, waiting, termination) // after each inspection of a pod
//	m.Finish(pod)                                     // its containers and resources are gone
//	m.Forget(pod)                                     // its source no longer specifies it
//	m.Reconcile(pod)                                  // pod.Status is what the record contains now
//	d, ok := m.Delivery(uid)                          // what is not delivered yet, and why
//	err = m.Flush(shutdownCtx)                        // before the process exits
//
// A program that delivers statuses itself needs only Compute.
//
// # Concurrency
//
// Functions are pure and safe for concurrent use. Report, Finish and Forget must not be called
// concurrently for the same pod; package podworker ensures this. All other methods of a Manager
// are safe for concurrent use. None of these waits for the sink. A pod has no goroutine and no
// timer; each call of the sink has a goroutine, at most Config.Parallel at a time.
//
// # Guarantees and limits
//
// For one pod, calls of the sink never overlap and are in the order of its reports. Reports
// during a call, or during the back-off after a failed one, result in a single further call
// with the last status. Delivery is at least once. The last status of a pod is delivered even if
// the pod is forgotten or added again under its UID meanwhile, but pending statuses do not
// survive the process: after a restart the next report delivers the whole status.
//
// A terminal phase is never left, a restart count never decreases, and the exit of a container
// keeps the code that was observed first, also after the runtime has removed the container. A
// terminal phase is not delivered while a container of the pod runs, and never with condition
// Ready true. DeletePod follows the final status. After a restart of the process this holds as
// far as pod.Status, or else Config.Restore, contains the earlier status.
//
// A delivered status that another writer changes is corrected, first after Config.RetryMin and
// then with increasing delays if the correction does not last, at most ten times
// Config.RetryMax: ten minutes by default. This requires calls of Reconcile, for example by
// podsource.Merge and podworker.Loop if the source includes the statuses of pods.
//
// If Facts.Probes is nil, every probe counts as successful: a pod is ready when its containers
// run.
//
// Resources are reported for containers that have an instance (rule st-15): the allocated
// resources, which are those of the spec of Facts.Pod, and the resources that the runtime was
// given last. For a container without either, no resources are reported; the kubelet reports
// empty ones.
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
//   - Exits are written once. A container that is lost and found again
//     takes its true exit in place of ContainerStatusUnknown.
//   - Until a probe has a result, what was said of the same instance stands,
//     for readiness as for startup; an agent's restart takes no pod out of
//     service, and puts none back (rules st-18, st-19).
//   - A running instance of a container counts before a newer one that exited
//     (lq-12). An init container that is gone counts as done only if regular
//     containers were created in the same sandbox (rule st-8).
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
