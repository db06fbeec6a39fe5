// Package status computes the statuses of pods and delivers them, to an API server for
// example.
//
// [Compute] is a pure function from [Facts] (the pod, its observed state, its previous status,
// the reasons why containers wait) to a v1.PodStatus: container statuses, phase, conditions,
// addresses, quality of service class. [Merge] combines the result with what other writers
// have written to the pod's record; [Describe] and [Summary] format statuses.
//
// A [Manager] delivers statuses to a [Sink]: immediately if the status differs from the
// previous one, in order for one pod, in parallel for different pods, again after a failure,
// and again if another writer has changed it. Changes of readiness and terminal phases are
// delivered first. [MemorySink], [Snapshot] and [Tee] are sinks.
//
// # Usage
//
// ExampleManager is a complete program. In short:
//
//	m, err := status.New(status.Config{Sink: sink})
//	go m.Run(ctx)                                     // delivers
//	s := m.Report(pod, observed, waiting, termination) // after each inspection of a pod
//	m.Finish(pod)                                     // its containers and resources are gone
//	m.Forget(pod)                                     // its source no longer specifies it
//	m.Reconcile(pod)                                  // with the recorded pod.Status
//	d, ok := m.Delivery(uid)                          // pending calls and their last error
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
// A change of readiness is included in the next report; the prober's owner must have the pod reported
// when a result changes.
//
// # Differences from the kubelet
//
//   - stopSignal is reported if the runtime reports it, without a feature gate (the kubelet's
//     ContainerStopSignals is alpha).
//   - Statuses of different pods are written in parallel, and a slow or failing write does not delay
//     other pods. A failed write is repeated after its own back-off, not at the next tick of 10 s.
//   - An unchanged status is never written, also for a pod that is being deleted, and Finish does not
//     write a status that is already final.
//   - A container that was created and not yet started has the reason ContainerCreating or
//     PodInitializing, as before its creation; a kubelet reports no reason (rule st-4).
//   - An exit is reported once. The observed exit of a container replaces ContainerStatusUnknown.
//   - Until a probe has a result, readiness and startup are those last reported for the same instance,
//     so that a restart of the agent does not change them (rules st-18, st-19).
//   - A running instance of a container precedes a newer one that has exited. A missing init container
//     counts as completed only if regular containers were created in the same sandbox (rule st-8).
//   - A missing container that waits is restartable according to its policy and the assumed exit code,
//     so that a pod that never restarts fails.
//   - A pod with the policy Never fails if its sandbox ends after one regular container has run and
//     before another one has. An init container that was killed for lack of memory has failed whatever
//     its exit code (rule rt-64). With the kubelet both pods stay Pending for ever.
//   - After a reboot a pod is Pending until its init containers are done in the new sandbox; a kubelet
//     changes its phase between Pending and Running with each init container.
//   - A succeeded init container that runs again in a new sandbox stays terminated in the status, and
//     the rest of the status is updated. The API server rejects the transition unless the policy is
//     Always, and the kubelet drops the whole update.
//   - The start time of a pod that an earlier agent started without recording it is that of its oldest
//     sandbox, so that activeDeadlineSeconds is not extended.
//   - A pod has AllContainersRestarting (rule rt-139) as long as the runtime lists an exit in the
//     newest sandbox that triggers it. No exit is reported for a container that never ran.
//   - If a runtime that lost its state restarts a container that must not restart, only the status of
//     that container is kept; the kubelet drops the whole update for as long as it runs. When the other
//     containers have terminated, the pod is terminal and is terminated.
//   - Messages are truncated between characters.
//   - No container statuses are invented for a pod that was rejected.
//   - The resources of a pod are those allocated or last given to it. The kubelet reads them from the
//     cgroup, which contains the largest number of bytes of cgroup v1 if there is no memory limit.
//   - The conditions of a pod that is deleted before it has started have the reason PodFailed.
//   - Arguments are never changed.
//
// # Testing
//
// The kubelet's rules are table tests. testdata/*.txt has complete pod lifecycles, alternating lines of
// facts and statuses; -update rewrites the statuses. Random facts and lifecycles check invariants and
// print their seed. The Manager is tested in synctest bubbles.
//
// # Stability
//
// Settled: a change that breaks a caller is announced a minor version before it.
package status
