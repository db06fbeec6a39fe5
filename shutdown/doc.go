// Package shutdown ends the pods of a node whose machine is about to stop, in order and
// in time, and has the machine wait until others know how they ended.
//
// # What it decides
//
// [Policy] says who ends when: groups of pods by priority, each with its time.
// [Policy.Plan] and [Grace] are pure functions. A [Manager] waits for a [Trigger] to
// tell, closes the node to new pods, ends those that are there group by group, and lets
// the machine stop when their last statuses are recorded, or time is up.
//
// Where the word comes from is the business of the triggers: systemd's logind, in the
// package logind; a signal ([Signals]); the program itself or its HTTP handler
// ([Manual]); whatever can be asked, as a cloud's metadata ([Poll]).
//
// # Usage
//
//	groups, err := shutdown.Simple(30*time.Second, 10*time.Second)
//	…
//	m, err := shutdown.New(shutdown.Config{
//		Policy:   shutdown.Policy{Groups: groups},
//		Triggers: []shutdown.Trigger{logindTrigger},
//		Pods:     running,
//		Kill: func(ctx context.Context, k shutdown.Kill) error {
//			// The error is nil only if nothing of the pod runs.
//			_, err := workers.KillAndWait(ctx, k.Pod.UID, podworker.KillOptions{
//				GracePeriodSeconds: &k.GracePeriodSeconds, Termination: shutdown.Ending(), Timeout: time.Hour,
//			})
//			return err
//		},
//		Flush:   statuses.Flush,
//		Changed: node.Update, // whose Health.Shutdown is m.Err()
//	})
//	…
//	go m.Run(ctx)
//
// m.Admit is asked before a pod may start; m.Unready when a status is made
// (status.Config.Unready). kube/kubelet/shutdown.go connects all of them.
//
// # Concurrency
//
// Run is called once. Err, Admit and Unready may be called from any goroutine. Config's
// functions are called from Run's goroutines: Kill and Cleaned from one per pod that is
// being ended, the others one at a time. Nothing is held while they are called.
//
// # Guarantees and limits
//
//   - A shutdown takes [Policy.Total] at most, whatever pods, volumes or the record of
//     statuses do; a machine that waits less ([Notice].Deadline) is left in its time,
//     and all times are shortened alike; if that is learned later, all that is left.
//   - The machine is let go when all statuses are recorded that could be, not when they
//     were sent (F-64).
//   - A shutdown that is called off leaves nothing behind but the pods that were ended,
//     or told to.
//   - If the agent is ended meanwhile, the machine waits no longer. Pods that were told
//     to end go on ending.
//   - Pods of a group end at the same time, whatever they need of each other.
//
// # Differences from the kubelet
//
//   - Any trigger, beside logind (F-62).
//   - Pods are shown as not ready before they end, and may run on for a while for those
//     who send them traffic ([Policy].Propagation; F-63). Without Config.Report they are
//     not.
//   - The last statuses are waited for (F-64). Without Config.Flush they are not.
//   - Time that a group does not use may go to those after it ([Policy].CarryOver; F-65,
//     nq-14).
//   - Pods that come to the node after their group has ended, as those whose admission
//     was under way, end with the next one.
//
// # Testing
//
// Each rule sh-1 … sh-12 and F-62 … F-65 has a test that says its number: tables for
// what is pure, and a machine in virtual time whose pods, volumes and sink are slow.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package shutdown
