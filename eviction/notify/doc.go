// Package notify tells at once when the memory of a control group runs low, so
// that evictions need not wait for the next look at the node (F-18, ev-58). It is
// a leaf beside package eviction, which has an interface for it and does without.
//
// # What it decides
//
// Which of the kernel's ways to use, and when a change is worth a look: when more
// is used than a level that was not exceeded before, or when the kernel itself
// speaks of distress.
//
//   - cgroup v1: an eventfd on memory.usage_in_bytes, for each level.
//   - cgroup v2: memory.events (a limit was met) and a PSI trigger (tasks wait for
//     memory: 150 ms in a second), and memory.current is read four times a second.
//   - Otherwise, and when the kernel refuses those: a file is read four times a
//     second, or whatever [Config.Usage] does.
//
// # Usage
//
//	n, err := notify.New(notify.Config{Dir: "/sys/fs/cgroup/memory"})
//	manager, err := eviction.New(eviction.Config{
//		Notifiers: map[eviction.Signal]eviction.Notifier{eviction.MemoryAvailable: n},
//		…
//	})
//
// # Concurrency
//
// Run is called once; Update at any time and from anywhere. Run has a goroutine
// for each level, and one for PSI; none of them outlives it.
//
// # Guarantees and limits
//
//   - A level that is exceeded is told of once, until less is used again. It is
//     told within a poll's period at the latest, by an event within milliseconds.
//   - A level that is exceeded already when it is set is told of.
//   - What cannot be set up is logged, and the next best way is taken: Run fails
//     only if the use cannot be read at all.
//   - Systems other than Linux have the reading of a file alone.
//
// # Differences from the kubelet
//
// It has this on cgroup v1 only, behind a setting.
//
// # Testing
//
// Levels and polls with a fake directory and in virtual time; the eventfd with a
// real cgroup, where tests may make one; memory.events, PSI and the reading of
// memory.current on a kernel with cgroup v2 alone, in an emulated machine.
//
// # Stability
//
// Experimental: try it, and expect it to change.
package notify
