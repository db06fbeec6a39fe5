// Package cm manages the cgroups of a node's pods and calculates the node's allocatable
// resources.
//
// # Behavior
//
// The cgroup of a pod and its limits ([PodName], [Policy].PodResources); the limits of
// the QoS classes; the allocatable resources of a node ([Allocatable]) and the limits
// that enforce them. These are pure functions. A [Manager] applies them to a [Tree]: it
// creates, repairs, resizes and removes cgroups. [CheckTunables], [SwapOn] and
// [CheckVersion] check the machine first.
//
// # Usage
//
//	tree, err := host.New(host.Config{Driver: cgroups.Systemd})
//	…
//	m, err := cm.New(cm.Config{Tree: tree, Driver: cgroups.Systemd, Capacity: capacity})
//	…
//	err = m.Setup(ctx)
//	// pipeline.Resources{Cgroups: m}, cri.Providers{Cgroups: m}
//	go m.Run(ctx)
//
// # Concurrency
//
// All methods of a [Manager] are safe for concurrent use; calls for the same pod wait for
// each other. Waiting for the processes of one pod delays only calls for that pod.
//
// # Guarantees and limits
//
//   - A pod runs in a cgroup that has its limits, or Ensure returns an error.
//   - After a restart existing cgroups are adopted. Limits are not set below those of
//     their containers: the caller of Resize continues an interrupted resize. The cgroup
//     of a QoS class never has less CPU than its running pods request, whether they have
//     been synced since or not.
//   - A cgroup that another program removes is created again at the pod's next sync.
//   - Limits of missing controllers are omitted and logged once.
//   - Cgroups of other nodes below the same root are not removed, changed or killed, except
//     that both nodes set the limits of the QoS classes.
//
// # Differences from the kubelet
//
//   - An existing cgroup of a pod is corrected, also when another program changes it
//     later: within five minutes.
//   - A limit that cannot be set fails the start of the pod.
//   - The demand of a QoS class includes pods that are terminating and still have a
//     cgroup.
//   - Orphaned cgroups are found by UID in all three QoS classes and removed eight at a
//     time. The kubelet removes the cgroup of every pod that it does not know, and kills
//     its processes; Collect removes only those of pods that belong to this node
//     ([Ledger]), and Setup returns [ErrForeign] while processes run in others.
//   - With the driver systemd, systemd moves the agent and system processes into scopes
//     of slices; a kubelet writes to cgroupfs directly.
//   - A pod's memory limit is not reduced below its current usage.
//
// # Testing
//
// Each rule is named by a test, or has a reason in internal/test/repo/rules_test.go. A
// [cgroups.Tree] replaces the cgroups of the machine; the packages host and oom test real
// ones, v1 and v2.
//
// # Stability
//
// Growing: later minor versions may change this API; CHANGELOG.md describes how to
// update.
package cm
