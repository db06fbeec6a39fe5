// Package emptydir implements the volume.Plugin of emptyDir volumes: directories on disk or in memory
// that exist as long as their pod.
//
// # Behavior
//
// A volume is a directory on the node's disk, a tmpfs (medium Memory), or a
// hugetlbfs (HugePages, HugePages-2Mi …). [Size] returns the size of a tmpfs, [PageSize] the page size
// of a hugetlbfs. The sizeLimit of a volume on disk is enforced by package eviction.
//
// # Usage
//
//	plugin, err := emptydir.New(emptydir.Config{Mounter: volume.NewMounter(true), Allocatable: node.Allocatable})
//	// plugin is a volume.Plugin for volume.Config.Plugins
//
// # Concurrency
//
// Safe for concurrent use as volume.Plugin requires.
//
// # Guarantees and limits
//
//   - The content survives restarts of the agent; only TearDown removes it.
//   - TearDown unmounts the mounts in the volume before it removes anything.
//   - Usage is measured as du does, or read from the project quota of the volume if Config.Quotas
//     is set and supported. A quota has no limit. It also counts files that were removed while
//     they are open, and on XFS for a moment all removed files. A file cannot be renamed or
//     linked into or out of the volume (EXDEV); programs such as mv copy it.
//
// # Differences from the kubelet
//
//   - If the limit of a tmpfs changes because the pod was resized, it is remounted with the new size
//     at the next sync of the pod. It keeps its size if its content is larger.
//   - The project of a volume is stored in its directory only, not in /etc/projects and /etc/projid.
//     A kubelet that takes the node over measures such a volume.
//
// # Testing
//
// volumetest.TestPlugin, a test for each rule, and real mounts and quotas if the test runs as root and
// the kernel has them.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package emptydir
