// Package logind reports by systemd's logind that a Linux machine is about to stop, and delays
// it.
//
// A [Trigger] holds a delay lock of login1 from the start, so that the machine waits for the
// node when it is stopped, and reports when that happens. If logind's maximum delay is too
// short, it is raised by a file in logind.conf.d.
//
// # Usage
//
//	t, err := logind.New(logind.Config{})
//	…
//	m, err := shutdown.New(shutdown.Config{Triggers: []shutdown.Trigger{t}, …})
//
// # Concurrency
//
// Watch must not be called concurrently.
//
// # Guarantees and limits
//
//   - The lock is released when the notice is released, when Watch returns, and, by the
//     kernel, when the process exits.
//   - If the bus or logind is unavailable, Watch returns an error. The last notice remains
//     valid, and so does the lock of a shutdown in progress.
//   - A Watch that starts while the machine is stopping reports that immediately. It cannot
//     have a lock then.
//   - logind is reloaded only if its maximum delay is too short. The file in logind.conf.d is
//     not removed; it is the same as the kubelet's, which is not removed either.
//
// # Differences from the kubelet
//
//   - A shutdown that started while no Watch was running is detected (PreparingForShutdown).
//
// # Testing
//
// A minimal logind serves a private dbus-daemon; it fails, disconnects and recovers. A real one
// stops an emulated machine.
//
// # Stability
//
// Growing: a minor version may change the API, and CHANGELOG.md describes how to migrate.
package logind
