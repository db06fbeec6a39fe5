// Package notify reports low memory of a cgroup as soon as it occurs, so that evictions need
// not wait for the next periodic pass. It implements the Notifier interface of package
// eviction, which does not require it.
//
// A pass is requested when the memory usage exceeds a level that it did not exceed before,
// or when the kernel reports memory pressure. The mechanism depends on the kernel:
//
//   - cgroup v1: an eventfd on memory.usage_in_bytes for each level.
//   - cgroup v2: memory.events (a limit was reached), a PSI trigger (tasks stalled on memory
//     for 150 ms within a second), and polling of memory.current four times a second.
//   - Otherwise, and if the kernel rejects these: polling of a file four times a second, or
//     of [Config.Usage].
//
// # Usage
//
// As in ExampleNotifier_Run:
//
//	n, err := notify.New(notify.Config{Dir: "/sys/fs/cgroup/memory"})
//	manager, err := eviction.New(eviction.Config{
//		Notifiers: map[eviction.Signal]eviction.Notifier{eviction.MemoryAvailable: n},
//		…
//	})
//
// # Concurrency
//
// Run must be called once; a second call returns an error. Update is safe for concurrent
// use. Run has a goroutine for each level and one for PSI; they return before it does.
//
// # Guarantees and limits
//
//   - A level that is exceeded is reported once, until the usage has fallen below it: within
//     milliseconds by an event, within the polling period otherwise.
//   - A level that is already exceeded when it is set is reported.
//   - If a mechanism cannot be set up, that is logged and the next one is used. Run returns
//     an error only if the usage cannot be read.
//   - On systems other than Linux a file is polled.
//
// # Differences from the kubelet
//
// The kubelet supports cgroup v1 only, with a setting.
//
// # Testing
//
// Levels and polling are tested with a fake directory in virtual time; the eventfd with a
// real cgroup where tests may create one; memory.events, PSI and memory.current with a
// cgroup v2 kernel in an emulated machine.
//
// # Stability
//
// Experimental: the API is expected to change.
package notify
