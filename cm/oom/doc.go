// Package oom reports processes that the kernel's OOM killer has killed.
//
// # Behavior
//
// A [Parser], which is pure, determines the kill that a line of the kernel log describes, and
// whether the node or a cgroup was out of memory. Where the kernel log cannot be read, the
// kills are derived from the counters of cgroups.
//
// # Usage
//
//	w, err := oom.New(oom.Config{
//		Kmsg:   oom.OpenKmsg,
//		Handle: func(k oom.Kill) { fmt.Println(k) },
//		Node:   node, Record: events,
//	})
//	go w.Run(ctx)
//
// # Concurrency
//
// Handle and Record are called on Run's goroutine, one at a time. A [Parser] must not be
// used concurrently.
//
// # Guarantees and limits
//
//   - Kills before Run are not reported: existing records of the kernel log are skipped.
//   - If the kernel log cannot be opened, Run returns an error; with Config.Cgroups it
//     logs a warning and uses these.
//   - Unknown lines are ignored.
//   - The counters are read each Period; they report how many processes were killed, not
//     which.
//
// # Differences from the kubelet
//
//   - Handle also receives kills in cgroups; the event SystemOOM is recorded only for the
//     node as a whole, as by the kubelet.
//   - Kills are reported without the kernel log too, as in a user namespace.
//
// # Testing
//
// Records of several kernels are golden files; the parser is fuzzed; tests on real
// kernels observe real kills.
//
// # Stability
//
// Growing: later minor versions may change this API; CHANGELOG.md describes how to
// update.
package oom
