// Package cgroups represents the cgroups of Linux, versions 1 and 2, as values: their
// names, the files with their limits, and the content of these files. It does not access
// the machine, so it works on every operating system. Package host accesses the cgroups
// of the machine.
//
// # Behavior
//
// A [Name] identifies a cgroup; the drivers cgroupfs and systemd spell it differently.
// [Resources] are the desired limits; [Facts].Settings returns the values to write for
// them, and [Facts].Read reads them back. [ReadStats] reads the usage of a cgroup.
// [Drift] reports what other programs have changed. [Tree] contains cgroups in memory.
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
// Functions are pure. A [Tree] is safe for concurrent use.
//
// # Guarantees and limits
//
//   - A nil value is not changed; nothing is reset implicitly.
//   - Settings omits the values of missing controllers; [Facts].Missing returns their
//     names.
//   - Invalid file content is an error that contains the name of the file.
//
// # Differences from the kubelet
//
//   - A name that contains "/" or "_" is an error instead of a panic.
//   - It does not depend on cAdvisor.
//
// # Testing
//
// Tables of rules; testdata contains files of real kernels; the parsers are fuzzed.
// [Tree] replaces the cgroups of a machine in tests.
//
// # Stability
//
// Growing: later minor versions may change this API; CHANGELOG.md describes how to
// update.
package cgroups
