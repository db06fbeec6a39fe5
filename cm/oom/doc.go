// Package oom tells which processes the kernel has killed because memory ran out.
//
// # What it decides
//
// What a line of the kernel's log says of a kill ([Parser], pure), whether the node
// as a whole was out of memory or one cgroup (oom-2), and which kills of cgroups the
// log did not tell of: where it can't be read, their own counters are looked at.
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
// Handle and Record are called on Run's goroutine, one at a time. A [Parser] is for
// one stream.
//
// # Guarantees and limits
//
//   - Kills from before Run began are not told: the log's old records are passed
//     over.
//   - A kernel log that can't be opened is an error of Run, unless there are
//     counters to look at: then it is a warning (oom-1).
//   - Lines that are not what the kernel writes are passed over; none is a panic.
//   - Counters are looked at each Period; they tell how many, not which process.
//
// # Differences from the kubelet
//
//   - Kills in cgroups are told, too, to Handle; the event SystemOOM is for the node
//     as a whole, as there (oom-2).
//   - Without the kernel's log, as in a user namespace, kills are still seen.
//
// # Testing
//
// Records of several kernels are golden; the parser is fuzzed; a real kernel's
// watcher sees real kills in the tests of package host's machine.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package oom
