// Package cgroups knows the cgroups of Linux, versions 1 and 2, as values: how
// they are called, which files a limit goes into, what their files say. It
// touches no machine, so it runs on any; package host is the machine's own tree.
//
// # What it decides
//
// A [Name] is a cgroup by its place in the tree, which the drivers cgroupfs and
// systemd spell differently. [Resources] are what a cgroup is to have;
// [Facts].Settings says which file gets which value for it, and [Facts].Read
// reads them back. [ReadStats] reads what a cgroup uses. [Drift] tells what
// somebody else has changed. [Tree] holds cgroups in memory.
//
// # Usage
//
//	facts := cgroups.Facts{Version: 2, Controllers: []string{"cpu", "memory", "pids"}}
//	name := cgroups.Name{"kubepods", "burstable", "pod1234"}
//	fmt.Println(name.Path(cgroups.Systemd))
//	for _, s := range facts.Settings(cgroups.Resources{CPUShares: new(int64(512))}) {
//		fmt.Println(s.File, s.Value)
//	}
//
// # Concurrency
//
// Functions are pure. A [Tree] may be used from many goroutines.
//
// # Guarantees and limits
//
//   - A value that is nil is left as it is; nothing is reset that was not asked
//     for.
//   - What a controller would hold that the machine does not have is left out of
//     Settings; [Facts].Missing names these controllers.
//   - Files that are not what the kernel writes give an error that names the file,
//     never a panic.
//
// # Differences from the kubelet
//
//   - A name with a "/" or a "_" is an error instead of a panic (cm-6).
//   - CPU shares become a weight by the formula that runc has since 1.3.2, so that
//     a pod and its containers follow one curve (cm-4, F-55); [Linear] is the
//     kubelet's of 1.32.
//   - Without cadvisor: the readers are some hundred lines (F-70).
//
// # Testing
//
// Each rule is a line in a table, by number; testdata has files as kernels write
// them; the readers are fuzzed. [Tree] stands in for a machine's cgroups in tests
// (F-60).
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package cgroups
