// Package register registers plugins that create a socket in a directory, as CSI, DRA and device plugins
// do.
//
// # Behavior
//
// Each socket in the directory tree belongs to a plugin. The Watcher reads its type, name and versions
// with GetInfo, calls the [Handler] of the type, and reports the result with NotifyRegistrationStatus. A
// plugin is deregistered when its socket is removed.
//
// # Usage
//
//	watcher, err := register.New(register.Config{
//		Dir:      "/var/lib/kubelet/plugins_registry",
//		Handlers: map[string]register.Handler{register.CSIPlugin: plugin},
//	})
//	go watcher.Run(ctx)
//
// # Concurrency
//
// Handlers are called concurrently, but not concurrently for the same plugin.
//
// # Guarantees and limits
//
//   - A plugin that hangs does not delay others, nor does a handler that does not return for it.
//     Timeouts: dial 10 s, GetInfo 1 s, NotifyRegistrationStatus 5 s.
//   - A failed registration is retried after 1 s, 2 s, doubled up to 2 minutes, and immediately when
//     the socket is replaced.
//   - Names that begin with "." are ignored.
//
// # Differences from the kubelet
//
//   - The directory is read when the file system notifies of a change and once per minute, not every
//     second.
//   - A plugin that cannot be notified of its registration remains registered until the retry.
//
// # Testing
//
// Against servers on real sockets, including ones that hang, exit or return invalid responses.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package register
