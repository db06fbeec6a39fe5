// Package logind tells by systemd's logind when a Linux machine is about to stop, and has
// it wait.
//
// # What it decides
//
// A [Trigger] holds a delay lock of login1 from the start, so that the machine waits for
// the node when somebody stops it, and tells when that is so. Where logind would not wait
// long enough, it is told to by a file in logind.conf.d (sh-4).
//
// # Usage
//
//	t, err := logind.New(logind.Config{})
//	…
//	m, err := shutdown.New(shutdown.Config{Triggers: []shutdown.Trigger{t}, …})
//
// # Concurrency
//
// Watch is for one goroutine at a time.
//
// # Guarantees and limits
//
//   - The lock is given back when the notice is released, when Watch returns, and, by the
//     kernel, when the program ends.
//   - A bus or a logind that goes away is an error of Watch. What it told last holds, and
//     so does a lock of a shutdown that is under way.
//   - A Watch that begins while the machine is stopping tells so at once. It can have no
//     lock then.
//   - logind itself is reloaded only where it would not wait long enough. The file in
//     logind.conf.d is not removed: the kubelet's is not, and it is the same.
//
// # Differences from the kubelet
//
//   - A shutdown that began while nobody watched is noticed (PreparingForShutdown).
//
// # Testing
//
// A logind of a few lines serves a private bus, which is a real dbus-daemon; it fails,
// goes away, and comes back. A real one stops an emulated machine.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package logind
