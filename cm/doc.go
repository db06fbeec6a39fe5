// Package cm makes requests and limits of pods real: it keeps the tree of cgroups
// that a node's pods live in, and knows what of the node is for pods.
//
// # What it decides
//
// Which cgroup a pod has and what is set there ([PodName], [Policy].PodResources);
// what the classes of pods share ([Policy].QOSResources); what of a node pods can
// have ([Allocatable]) and what limits enforce it. These are pure functions. A
// [Manager] carries them out on a [Tree]: it makes, repairs, resizes and removes.
// [CheckTunables], [SwapOn] and [CheckVersion] look at the machine before it does.
//
// # Usage
//
//	tree, err := host.New(host.Config{Driver: cgroups.Systemd})
//	…
//	m, err := cm.New(cm.Config{Tree: tree, Driver: cgroups.Systemd, Capacity: capacity})
//	…
//	err = m.Setup(ctx)
//	// podworker.PodResources{Cgroups: m}, cri.Config{CgroupParent: m.CgroupParent}
//	go m.Run(ctx)
//
// # Concurrency
//
// All methods of a [Manager] may be called from any goroutine; those for one pod
// wait for each other. Nothing is held while one pod's processes are waited for but
// that pod.
//
// # Guarantees and limits
//
//   - A pod runs in a cgroup that has its limits, or Ensure says why not.
//   - After a restart existing cgroups are adopted. Limits below those of their
//     containers are not set: an interrupted resize is continued by the caller of
//     Resize. The cgroup of a QoS class never has less CPU than its running pods
//     request, whether they have been synced since or not.
//   - A cgroup that vanishes is made anew at the pod's next sync.
//   - Limits that the machine lacks the controller for are left out, and named once.
//
// # Differences from the kubelet
//
//   - A pod's cgroup that is there is put right, also when somebody changes it
//     later (cm-12, nq-10, F-57); Compat.KeepExisting leaves it.
//   - A limit that can't be set fails the pod's start (cm-10); Compat.IgnoreSetErrors
//     starts it.
//   - The demand of a class is what pods that have a cgroup request, also while
//     they stop (cm-18).
//   - Orphans are found by UID in all three classes, and removed eight at a time
//     (cm-44).
//   - With the driver systemd the agent and processes of the system are moved by it,
//     into scopes of slices (cm-46); a kubelet writes to cgroupfs behind its back.
//   - A pod's memory limit is not made less than what is in use (cm-43).
//
// # Testing
//
// Each rule is named by a test, or has a reason in internal/test/repo/rules_test.go.
// A [cgroups.Tree] stands in for the machine; the packages host and oom try real
// ones, v1 and v2.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package cm
