// Package register finds plugins that make themselves known to the node's agent by a
// socket in a directory, as CSI, DRA and device plugins do.
//
// # What it decides
//
// A socket in the directory, or in one below it, is a plugin's. It is asked for type,
// name and versions; the [Handler] of that type takes it on, and the plugin is told
// whether it was taken (plg-1). A plugin whose socket goes is given up.
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
// Handlers are called from many goroutines, but never twice at a time for one socket.
//
// # Guarantees and limits
//
//   - A plugin that hangs holds up no other: dialing has 10 s, GetInfo 1 s, the answer to
//     the plugin 5 s.
//   - One that couldn't be taken on is tried again, after 1 s, then 2, at most 2 minutes
//     apart, and at once when its socket is made anew.
//   - Names that begin with "." are not looked at.
//   - It does nothing while nothing changes.
//
// # Differences from the kubelet
//
//   - It doesn't look each second, but when the file system tells of a change.
//
// # Testing
//
// Against servers on real sockets, of which some hang, lie, or die.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package register
