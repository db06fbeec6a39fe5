// Package shutdown terminates the pods of a node whose machine is about to stop, in order and
// within a time limit, and delays the machine until their final statuses are recorded.
//
// A [Policy] assigns pods to groups by priority, each with a grace period. [Policy.Plan] is a pure
// function. A [Manager] waits for a notice from a [Trigger], rejects new pods, terminates the existing
// ones group by group, and releases the machine when their final statuses are recorded or the time is up.
//
// Triggers are systemd's logind (package logind), a signal ([Signals]), the program itself or
// its HTTP handler ([Manual]), and any source that can be polled, such as a cloud's metadata
// service ([Poll]).
//
// # Usage
//
// ExampleManager is such a program with a pod in memory:
//
//	groups, err := shutdown.NewGroups(30*time.Second, 10*time.Second)
//	…
//	state := &shutdown.State{Changed: node.Update} // whose Health.Shutdown is state.Err()
//	…
//	m, err := shutdown.New(shutdown.Config{
//		State:    state,
//		Policy:   shutdown.Policy{Groups: groups},
//		Triggers: []shutdown.Trigger{logindTrigger},
//		Pods:     pods{table},
//		Statuses: published{statuses},
//	})
//	…
//	go m.Run(ctx)
//
//	// Kill implements shutdown.Pods, as the table implements Running. The error must be
//	// non-nil if any container of the pod may still run.
//	func (p pods) Kill(ctx context.Context, k shutdown.Kill) error {
//		_, err := p.KillAndWait(ctx, k.Pod.UID, podworker.KillOptions{
//			GracePeriodSeconds: &k.GracePeriodSeconds, Termination: k.Termination(), Timeout: time.Hour,
//		})
//		return err
//	}
//
// Call [State.Admit] before a pod starts, and [State.Unready] when a status is computed
// (status.Facts.Unready). kube/kubelet connects all of them.
//
// # Concurrency
//
// Run must be called once; a second call returns an error. Err, Admit, Unready and Times are
// safe for concurrent use. Run calls the methods of Pods and Statuses from its goroutines: Kill
// and AwaitCleaned from one for each pod that is being terminated, the others one at a time. No lock is
// held during these calls.
//
// # Guarantees and limits
//
//   - A shutdown takes at most [Policy.Total], even if pods, volumes or the status sink do not
//     respond. If the machine stops earlier ([Notice].Deadline), all periods are shortened in
//     proportion; if that becomes known during the shutdown, the remaining ones are.
//   - The machine is released after the statuses were recorded, not after they were sent.
//   - A canceled shutdown leaves only the pods terminated that were already terminating.
//   - If the agent stops during a shutdown, the machine does not wait any longer. Pods that are
//     terminating continue to.
//   - Pods of a group terminate concurrently, regardless of dependencies.
//
// # Differences from the kubelet
//
//   - Any trigger, not only logind.
//   - Pods become not ready before they terminate, and may run for a while until traffic has
//     moved ([Policy].Propagation). Requires Config.Statuses.
//   - The shutdown waits for the final statuses. Requires Config.Statuses.
//   - Unused time of a group may be given to later groups ([Policy].CarryOver).
//   - Pods that are added after their group has terminated, such as those being admitted, are
//     terminated with the next group.
//
// # Testing
//
// Pure functions have table tests; a machine in virtual time has slow pods, volumes and a slow
// status sink. Each rule has a test that cites its number.
//
// # Stability
//
// Growing: a minor version may change the API, and CHANGELOG.md describes how to migrate.
package shutdown
