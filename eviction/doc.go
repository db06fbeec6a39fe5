// Package eviction protects a node that is low on memory, disk space, inodes or
// process IDs: it reclaims unused resources, then evicts pods in rank order, and
// reports the ranking.
//
// [Inputs.Plan] is the whole policy, as a pure function of values: a summary of the
// node's usage, thresholds, pods, and the state of the previous plan. A [Plan] contains
// the thresholds that are met and since when, the node conditions, the resources that can
// be reclaimed without evicting a pod, and all pods in the order in which they would be
// evicted, each with the reason why it precedes the next. [Plan.After] updates the plan
// with the usage measured after resources were reclaimed. [Settings.Parse] parses
// thresholds in the form of a KubeletConfiguration, and [Policy.Admit] decides which pods
// may start on a node under pressure.
//
// A [Manager] measures the node, makes plans and carries them out with the functions of
// its [Config]. They decide where usage comes from and how pods are killed; neither a CRI
// runtime nor cgroups are required.
//
// # Usage
//
// ExampleManager_Pass is this program with a node in memory:
//
//	thresholds, err := eviction.Settings{}.WithDefaults("linux", false).Parse()
//	manager, err := eviction.New(eviction.Config{
//		Policy:  eviction.Policy{Thresholds: thresholds},
//		Summary: summary, // func(ctx, pods bool) (*statsapi.Summary, error)
//		Pods:    pods{table},
//		Record:  events,
//	})
//	go manager.Run(ctx)
//	// manager.Under(v1.NodeMemoryPressure) for the node conditions,
//	// manager.Admit(ctx, pod) before a pod starts
//
//	// Evict implements eviction.Pods, as the table implements Running. The error must be
//	// non-nil if any container of the pod may still run.
//	func (p pods) Evict(ctx context.Context, v eviction.Victim) error {
//		_, err := p.KillAndWait(ctx, v.Pod.UID, podworker.KillOptions{
//			GracePeriodSeconds: &v.GracePeriodSeconds, Evict: true, Termination: v.Termination(),
//		})
//		return err
//	}
//
// For a dry run, call [Inputs.Plan] and do not carry out the result. To replace the
// ranking of pods, set [Policy.Rank], as ExampleInputs_rank does.
//
// # Concurrency
//
// Functions of values and the methods of a [Manager] are safe for concurrent use. Run must
// be called once; a second call returns an error. Pass blocks while another pass is in
// progress; Conditions, Under, Admit and Healthy do not. The functions of Config are called
// on the goroutine of the pass, with two exceptions: those that measure (Summary, Memory,
// Disks.Devices) have a goroutine each, and Pods.Evict and its hooks are called from
// several goroutines if [Policy.MaxVictims] is above 1.
//
// # Guarantees and limits
//
//   - Equal inputs give equal plans. With the default ranking, removing a pod does not
//     change the order of the others, and a higher priority never makes a pod precede
//     another one that it followed.
//   - No pod is evicted while no threshold is met, for measurements that were acted on in
//     an earlier pass, or for impossible measurements: usage above the capacity, negative
//     amounts.
//   - A measurement that does not return fails all passes until it returns, and
//     [Manager.Healthy] reports it. Calls of one function do not overlap.
//   - The clock may be set back: times in the future count as now.
//   - Critical pods are not evicted. If only critical pods are left, no pod is evicted, and
//     each pass records the event EvictionThresholdMet.
//   - A pass evicts one pod whose kill succeeds. MaxVictims permits more, as many as are
//     estimated to reclaim the deficit.
//   - A plan for 500 pods takes less than half a millisecond (docs/benchmarks.md).
//   - The eviction API is not used and PodDisruptionBudgets are not evaluated;
//     [Policy.Spare] can.
//   - Node taints are set by the control plane, not by this package.
//
// # Differences from the kubelet
//
//   - Of several signals whose thresholds are met, the one with the largest deficit
//     relative to its capacity is acted on first. The kubelet's choice between nodefs and
//     imagefs depends on map order.
//   - Resources are reclaimed step by step until no threshold is met. After that a pod is
//     evicted only for thresholds of the same file system that have been met for their
//     grace period; the kubelet continues for any threshold that is met.
//   - Pods are ranked again with new measurements after resources were reclaimed.
//   - Inode usage is not reduced by the bytes of requested ephemeral storage. Where images
//     have a file system of their own, pods are ranked by the size of their images if
//     Config.Disks is set.
//   - The limit of a container's ephemeral storage counts its writable layer also where images
//     have a file system of their own (Kubernetes issue 139339).
//   - Memory of a pod that the summary lacks is the sum of its containers', and a total of
//     ephemeral storage that of its parts. Other usage that it lacks counts as zero, and
//     [Candidate].Unmeasured reports it.
//   - If the kill of a pod fails, the next pod is evicted in the same pass.
//   - Ties are broken by age, the youngest pod first, then by name.
//   - Messages quote the threshold that was acted on, and list containers in the order of
//     the pod's spec.
//   - Errors of settings name the setting, and all of them are returned at once.
//   - An event's annotations contain an [Explanation] as JSON.
//   - Available memory may be measured by other means (Config.Memory), transition
//     periods may differ by signal, and memory notifications also work with cgroup v2
//     (package eviction/notify).
//
// # Testing
//
// The scenarios of testdata/*.txt are a node's usage over time and the resulting actions.
// Invariants are checked with random nodes; settings and plans are fuzzed. Tests with disks
// that fill up and pods that allocate memory are in test/kubelet.
//
// # Stability
//
// Growing: a minor version may change the API, and CHANGELOG.md describes how to migrate.
package eviction
