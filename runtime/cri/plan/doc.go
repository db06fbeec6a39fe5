// Package plan computes the next operations for a pod from its spec and its observed
// state: the containers to stop, the sandbox to create and the containers to start. It
// carries out none of them; package runtime/cri does.
//
// [Compute] decides whether the sandbox is kept, how far the init containers are, which
// containers restart after an exit or a failed probe, which instances are stopped or
// resized in place, and whether all containers of the pod restart. A [Plan] is data: each
// operation has a reason, String prints it, and it marshals to JSON. [Hash] is the hash of a
// container's spec that its instances store, and [Backoff] has the delays of crashing
// containers.
//
// # Usage
//
//	p := plan.Compute(plan.Input{Pod: pod, Status: status, Probes: probes, Backoff: backoff, Now: time.Now()})
//	if p.Empty() {
//		return // the pod is in the desired state, or waits for p.Waits
//	}
//	// stop the pod if p.KillPod, else each of p.Kill; remove each of p.Remove,
//	// and stop at the first error; create the sandbox; then
//	for _, s := range p.Start {
//		if s.InBackoff() {
//			// report CrashLoopBackOff, s.BackoffMessage(pod); compute again at p.RetryAt()
//			continue
//		}
//		// create an instance, or start the instance s.Resume
//		backoff.Started(pod, s, time.Now())
//	}
//	// before the regular containers, resize each of p.Resize and store r.To
//
// A plan is one step: it starts one init container, and the next plan, computed after that
// container has exited, starts the one after it. The status must be observed after the last
// plan was carried out.
//
// With Input.RestoreFrom, a new pod continues the processes of a checkpoint (KEP-5823, alpha): a restore replaces the
// creation of the sandbox and of the containers, which are then started. The regular init containers of the pod have
// succeeded before the checkpoint and do not run. Until all containers have been started in one sandbox, later plans
// continue with the instances that were restored, or restore all of them in another sandbox if one is missing or failed
// to start. After that, nothing distinguishes the pod from others: a container that exits is created from its spec
// according to its restart policy, and so is the pod, with its init containers, if its sandbox is lost.
//
// The spec of the pod must have the allocated resources, and
// [runtime.ContainerStatus].Resources those that the instance was last given.
//
// # Concurrency
//
// Compute is a pure function and safe for concurrent use; it calls the [Delays] of its Input.
// A [Backoff] is safe for concurrent use. A Plan points into its Input: neither may be changed
// while the plan is in use.
//
// # Guarantees and limits
//
//   - The same input gives the same plan; the input is not changed (rule inv-15).
//   - If operations succeed, plans become empty (rule inv-16) after at most two more than the
//     number of init containers, as long as these succeed and no other container exits. One
//     more is needed after a failed probe without restart, and for a restart of all containers.
//   - A container is never started while an instance of it runs, unless the same plan stops
//     that instance first.
//   - A container or pod that has terminated is not restarted.
//   - Nothing is started, resized or removed for a pod with a deletion timestamp (rule rt-31).
//   - Restart counts and sandbox attempts only grow; with Input.History also after all
//     instances were removed.
//   - An empty plan for a pod of up to eight containers does not allocate memory.
//   - Instances of containers that the spec does not have are ignored.
//   - Resources are compared in the kernel's units: amounts with the same shares and quota are
//     equal. The caller orders decreases and increases (rule al-16).
//   - A checkpoint is used once, and not for a pod of which a regular container has terminated: that one would run
//     twice.
//   - A container that was stopped to be started again, and whose start is in back-off or has
//     failed, is restarted by later plans whatever its exit code is, if the caller stores
//     Plan.Replaced. The kubelet lets the exit code decide, so that such a container completes if
//     it exits with 0 and its policy is OnFailure.
//
// # Differences from the kubelet
//
//   - A container runs if any of its instances does, not only the newest; duplicates are
//     stopped.
//   - An instance that was created from the current spec but not started is started, not
//     replaced.
//   - The progress of init containers, and whether regular containers have started, depend
//     only on the instances in the current sandbox. Old init containers need not be removed
//     when a sandbox is replaced, a pod is not considered initialized after a reboot, and a
//     crashed sidecar does not delay the restart of crashed containers.
//   - A sidecar that must be replaced delays the next init container until the new instance
//     runs. A change of its spec is detected also while it starts (rule rt-60).
//   - When the last container is stopped for a failed probe and not restarted, its kill has
//     its own message and the probe's grace period, and the next plan stops the pod. The
//     kubelet stops the pod immediately.
//   - A resize that requires a restart replaces the container regardless of the restart
//     policy, as in the kubelet, where the API server rejects such resizes. An unknown memory
//     request does not cause a restart.
//   - All containers restart for exits of instances in the sandbox only, not for the condition
//     AllContainersRestarting, which may be stale (rule rt-138). This precedes the replacement
//     of the sandbox. A sidecar that was terminated with its pod or sandbox does not cause it.
//   - A container whose exit restarts all containers is in back-off as if it had restarted
//     alone, computed from History.Exits; so are those that crashed before it. Containers that
//     were stopped for the restart start without delay. The kubelet removes the instances from
//     which it computes the back-off, and restarts in a loop without delay.
//   - A container whose own policy is Never and that has run is not restarted when the sandbox
//     is lost (in the kubelet it is, rule rt-42). A pod with the policy Never is not stopped
//     for that if a container's own policy allows a restart (rule rt-41). A pod with the policy
//     Never of which no regular container has run gets a new sandbox; the kubelet leaves it Pending
//     for ever if its sandbox ends then. A pod with a failed init container is not
//     restarted. Plans before and after the new sandbox thus agree.
//   - A container in an unknown state counts as killed: if its policy does not restart it, it is
//     stopped and does not run twice.
//   - A stopped pod is not stopped again by each plan.
//   - An instance with an unknown hash is kept, not replaced.
//   - An init container that was killed for lack of memory with the exit code 0 has failed;
//     its restart is decided as for a failure.
//   - Back-off has no jitter, and is derived after a restart of the agent, unless
//     [BackoffConfig] disables it. A finish time far in the future, from before the clock was
//     set back, causes no delay.
//
// # Stability
//
// Settled: an incompatible change is announced one minor version before.
package plan
