// Package host is the cgroup tree of this machine, on github.com/opencontainers/cgroups,
// which is seen nowhere else: it brings a logger, D-Bus, and package state.
//
// That module is the home of github.com/opencontainers/runc/libcontainer/cgroups since
// runc 1.3, which does not contain the old path any more. Importing the old path would
// pin runc below 1.3 and break the builds of programs whose other dependencies select a
// newer one.
//
// # Behavior
//
// [New] determines the version of cgroups of the machine and where they are mounted, and
// [Delegate] the part of the tree that an agent without privileges may use. A [Tree]
// determines whether a cgroup exists (cm-9), and kills its processes before it removes it
// (cm-44).
//
// # Usage
//
//	tree, err := host.New(host.Config{Driver: cgroups.Cgroupfs})
//	if err != nil {
//		return err // not Linux, no cgroups, no systemd
//	}
//	name := cgroups.Name{"kubepods", "pod1234"}
//	err = tree.Apply(ctx, name, cgroups.Resources{Memory: new(int64(64 << 20))})
//
// # Concurrency
//
// A [Tree] may be used from many goroutines; calls for one cgroup should not
// overlap.
//
// # Guarantees and limits
//
//   - Linux; elsewhere New returns [errors.ErrUnsupported].
//   - Controllers that the machine lacks are no error: see [cgroups.Facts].Missing.
//   - A cgroup that vanishes while it is read is fs.ErrNotExist; one that may not
//     be written is [cgroups.ErrReadOnly].
//   - Remove doesn't return before the kernel has let go of the cgroup, or ctx ends.
//
// # Differences from the kubelet
//
//   - An error of setting a limit is an error of Apply (cm-10, nq-10).
//   - Processes are ended with cgroup.kill where there is one, and waited for.
//
// # Testing
//
// With real cgroups: v1 on the machine itself, v2 in an emulated kernel, and there with a
// real systemd. Cgroup v1 with the driver systemd is not tried.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package host
