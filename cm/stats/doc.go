// Package stats collects the usage of a node and its pods in the types of the kubelet's
// summary API, for evictions, /stats/summary and /metrics/resource.
//
// # Behavior
//
// The source of each value: the CRI runtime first, then the pods' cgroups for each field
// that it does not report; /proc for the node; file systems for disks. Which of several
// sandboxes or containers with one name counts. How old a value may be.
//
// # Usage
//
//	c, err := stats.New(stats.Config{NodeName: "n1", Runtime: rt, Cgroups: tree, Root: os.DirFS("/")})
//	go c.Run(ctx)                          // refreshes the cache
//	summary, err := c.Summary(ctx, false)  // from the cache
//	summary, err = c.Summary(ctx, true)    // current values of node and disks, pods at most a second old
//
// # Concurrency
//
// All methods are safe for concurrent use. If several callers find the cache expired, one
// of them collects and the others wait for it.
//
// # Guarantees and limits
//
//   - A value that no source reports is absent, never zero.
//   - If the runtime fails, an error is returned together with a summary that contains
//     the node.
//   - Callers share a summary and must not modify it.
//   - Logs are one directory per container, which is not walked recursively. At most
//     10,000 entries of a directory count.
//
// # Differences from the kubelet
//
//   - No cAdvisor: the values of the node are read on demand.
//   - One provider: CRI first, cgroups for each missing field.
//   - The inodes of images are counted for the file system of the mountpoint.
//   - Termination messages count as ephemeral storage; they and the hosts file count with
//     their blocks on disk.
//   - User-defined metrics and accelerators are not supported.
//
// # Testing
//
// rules_test.go lists each rule with its test; the node is a directory tree, the cgroups
// are in memory.
//
// # Stability
//
// Growing: later minor versions may change this API; CHANGELOG.md describes how to
// update.
package stats
