// Package plan decides what a pod needs next: from its spec and what the
// runtime holds of it, to the containers to stop, the sandbox to make and the
// containers to start. It does none of it; package runtime/cri carries plans
// out.
//
// # What it decides
//
// [Compute] is the whole of it: whether the sandbox can stay, how far the init
// containers are, which containers run again after an exit or a failed probe,
// which instance has to go, which is to get other resources while it runs,
// whether the whole pod starts over, and what waits for what. A [Plan] is data,
// with a reason on each step, prints itself in words and goes into JSON. Beside
// it are the two things a plan depends on: [Hash], the mark by which an instance
// tells which definition it was made from, and [Backoff], the delays of
// containers that crash.
//
// # Usage
//
//	p := plan.Compute(plan.Input{Pod: pod, Status: status, Probes: probes, Backoff: backoff, Now: time.Now()})
//	if p.Empty() {
//		return // the pod is as it should be, or waits for p.Waits
//	}
//	// stop the pod if p.KillPod, else each of p.Kill; remove each of p.Remove,
//	// and stop at the first that fails; make the sandbox; then
//	for _, s := range p.Start {
//		if s.InBackoff() {
//			// report CrashLoopBackOff, s.BackoffMessage(pod); come back at p.RetryAt()
//			continue
//		}
//		// create a new instance, or start the one that s.Resume names
//		backoff.Started(pod, s, time.Now())
//	}
//	// before the regular ones, resize each of p.Resize and write down r.To
//
// A plan is one step: it starts one init container, and the next plan, made
// when that one was seen to exit, starts the one after it. Compute from a
// status that was observed after the last plan was carried out.
//
// The pod is the one that was allocated its resources: where somebody
// decides over resizes, the spec has what was decided, and
// [runtime.ContainerStatus].Resources what the instance was last given.
//
// # Concurrency
//
// Compute is a pure function and may run anywhere. It asks the [Delays] it is
// given; the methods of a [Backoff] may be called from many goroutines. A Plan
// points into its Input: neither may be changed while the plan is in use.
//
// # Guarantees and limits
//
//   - The same input gives the same plan; the input is not changed (inv-15).
//   - Carried out by a runtime without faults, plans come to rest (inv-16): after
//     at most two more than there are init containers there is nothing to do, as
//     long as these succeed and nothing else exits. A container that a probe
//     condemns for good takes one more, and so does a pod that starts over.
//   - A container is never started while an instance of it runs, unless the same
//     plan stops that instance first.
//   - What has exited for good is not run again, nor is a pod of such.
//   - Nothing is started, resized or removed for a pod with a deletion timestamp
//     (rt-31).
//   - Restart counts and sandbox attempts only grow, and with Input.Counts and
//     Input.Attempts also when nothing is left of the instances.
//   - A pod with nothing to do and up to eight containers costs no allocation.
//   - An instance whose name the spec does not have is left alone.
//   - Resources are compared as the kernel has them: amounts that give the same
//     shares and quota are equal. Resources of the pod as a whole are not looked
//     at, for no sandbox tells which it was given; the order of decreases and
//     increases is for whoever carries the resizes out (al-16).
//   - A container that was stopped for a failed probe and is in back-off is, in
//     the plans after that, one that has exited: its exit code decides, as with
//     the kubelet. Policy OnFailure does not restart one that stopped with 0.
//   - Starting over has no back-off, as nothing is left to count from.
//
// # Differences from the kubelet
//
//   - Any running instance of a name makes the container running, not only the
//     newest one; extra copies are stopped (lq-12).
//   - An instance that was created from the present definition but never started
//     is started, not left lying and replaced (lq-13), unless [Compat] says so.
//   - Which init containers are done, and whether the regular ones have begun, is
//     told by the instances of the present sandbox alone. So there is no need to
//     remove old init containers when a sandbox is replaced, a reboot does not
//     read as initialised, and a crashed sidecar does not hold up the restart of
//     crashed containers.
//   - A sidecar that has to be replaced holds the init container after it until
//     the new one runs. Its definition is looked at also while it starts up
//     (rt-60).
//   - When the last container is stopped for a failed probe and not restarted,
//     it gets its own message and its probe's grace period, and the pod is
//     stopped by the plan after that. The kubelet stops the pod at once.
//   - A resize that wants a restart replaces the container whatever the restart
//     policy; so does the kubelet, but the API server sees to it that nobody
//     asks. A memory request that nobody wrote down is no reason for a restart.
//   - A pod starts over for the exits that the runtime shows in its sandbox, and
//     for nothing else: not for the condition AllContainersRestarting, which may
//     be old (rt-138). It comes before the replacement of the sandbox. A sidecar
//     that went down with its pod or its sandbox does not ask for it.
//   - A container that makes its pod start over is backed off as if it had been
//     restarted alone, by the exits on record; so are those that crashed before
//     it. What was stopped for it starts again at once. The kubelet removes the
//     instances that its back-off looks at, and loops without a pause.
//   - A container whose own policy is Never and that had its run is not run again
//     because the sandbox was lost (the kubelet: rt-42); and a pod of policy Never
//     is not given up for that loss if a container's own policy says to go on
//     (rt-41). A pod whose init container failed for good is not begun anew. Thus
//     plans agree before and after the new sandbox.
//   - A pod that is down is not stopped again with each plan.
//   - An instance without a readable hash is kept, not replaced.
//   - An init container that ran out of memory with exit code 0 has failed, and
//     its restart is decided as for a failure.
//   - Back-off has no jitter and is derived after a restart of the agent (lq-29),
//     unless [BackoffConfig] says so. A finish time far in the future, left by a
//     clock that was set back, delays nothing.
//
// # Testing
//
// The decisions are tables named after the rules they show, and a test sees to
// it that no rule is without one; testdata holds
// stories, each a pod with the plans of its life in words (go test -update
// rewrites them). The guarantees above are checked on random pods and statuses,
// from a seed that is printed, with a simulated runtime that carries the plans
// out; FuzzCompute looks for worse ones.
//
// # Stability
//
// Settled: a change that breaks a caller is announced a minor version before it.
package plan
