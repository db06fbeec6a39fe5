// Package eviction keeps a node alive when it runs out of memory, disk, inodes or
// processes: it frees what nobody needs, then ends pods, the right ones first, and
// can say why it was them.
//
// # What it decides
//
// [Inputs.Plan] is the whole policy, as a function of values: a summary of the
// node, thresholds, pods, and the state that the last plan left. It tells which
// thresholds are met and since when, which conditions the node has, what can be
// freed without ending pods, and every pod in the order in which it would go, with
// the comparator that put it before the next ([Rank]). [Plan.After] is its second
// look, when what could be freed was freed. [Settings.Parse] reads thresholds as a
// KubeletConfiguration has them, and [Admit] says who may start on a node that has
// little left.
//
// A [Manager] measures, asks for plans and carries them out, by the functions in
// its [Config]. Where figures come from, and how pods end, is up to them: neither a
// CRI nor cgroups are needed (F-27).
//
// # Usage
//
//	thresholds, err := eviction.Settings{}.WithDefaults("linux", false).Parse()
//	manager, err := eviction.New(eviction.Config{
//		Policy:  eviction.Policy{Thresholds: thresholds},
//		Summary: stats.Summary, // func(ctx, fresh bool) (*statsapi.Summary, error)
//		Pods:    activePods,
//		Kill: func(ctx context.Context, e eviction.Eviction) error {
//			// The error is nil only if nothing of the pod runs.
//			_, err := workers.KillAndWait(ctx, e.Pod.UID, podworker.KillOptions{
//				GracePeriodSeconds: &e.GracePeriodSeconds, Evict: true, Termination: e.Ending(),
//			})
//			return err
//		},
//		Record: events,
//	})
//	go manager.Run(ctx)
//	// manager.Under(v1.NodeMemoryPressure) for the node's conditions,
//	// manager.Admit(pod) before a pod starts
//
// As a dry run, ask [Inputs.Plan] and do nothing.
//
// # Concurrency
//
// Functions of values and methods of a [Manager] are safe for concurrent use. Run must
// be called once; Pass waits for a pass that is under way; Conditions, Under, Admit and
// Healthy don't wait for passes. The functions of Config are called on the goroutine of
// the pass, except those that measure (Summary, Memory, Layout), which have one of
// their own, and Kill and the hooks of kills, of which there are several where
// [Policy.MaxVictims] is above 1.
//
// # Guarantees and limits
//
//   - Equal inputs give equal plans. Removing a pod does not change the order of
//     the others; a higher priority never makes a pod go earlier.
//   - Nobody goes while no threshold is met, by figures that were acted on before
//     (ev-22), or by figures that cannot be true: use beyond the capacity, amounts
//     below zero (F-17).
//   - A measurement that does not return fails the passes until it does, and
//     [Manager.Healthy] reports it. There is never a second one beside it.
//   - Clocks may be set back: times of the future count as now.
//   - Critical pods never go. When only such are left nothing is done, and each
//     pass says so in an event.
//   - One pod goes in a pass, if it can be ended. MaxVictims allows for more, by
//     what they are estimated to give back.
//   - A plan for 500 pods takes less than half a millisecond (docs/benchmarks.md).
//   - No eviction API is used, and PodDisruptionBudgets are not looked at (ev-57):
//     [Config.Spare] is the place for who wants that.
//   - Taints of the node are the control plane's.
//
// # Differences from the kubelet
//
// Each has an option in [Compat], or is off unless asked for:
//
//   - Of several low signals the one that lacks most comes first (F-19, nq-4).
//   - What could be freed is freed step by step, until it is enough (F-21), and
//     only thresholds of the same file system that have been met for their grace
//     period cost a pod its life then (nq-5).
//   - Pods are ranked again, by new figures, when something was freed.
//   - Inodes are ranked by inodes, and images by their size, where they have a file
//     system of their own and somebody knows it (F-23, nq-6).
//   - For a pod that cannot be killed the next one goes, in the same pass (F-22,
//     nq-7).
//   - Pods that tie are ordered by age, the younger first, then by name.
//   - Messages quote the threshold that was acted on, and tell of containers in the
//     order of the spec (ev-55).
//   - Errors of settings name the setting, and all of them are told at once.
//   - An event's annotations hold an [Explanation] as JSON (F-15).
//   - Memory may be measured otherwise (F-16), transition periods may differ by
//     signal (F-26), and low memory is told of on cgroup v2 as well (package
//     eviction/notify, F-18).
//
// # Testing
//
// Stories in testdata/*.txt: facts over time, and what happens. Laws over random
// nodes; fuzzed settings and plans. Real disks that fill up and real pods that eat
// memory are in test/kubelet.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package eviction
