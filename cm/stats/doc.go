// Package stats tells what a node and its pods use, in the types of the kubelet's
// summary API: what evictions are decided by, and what /stats/summary and
// /metrics/resource show.
//
// # What it decides
//
// Where each number comes from: the CRI runtime first, the pods' cgroups where that
// says nothing, field by field, /proc for the node, file systems for disks. Which of several
// sandboxes or containers of one name counts (st-7). How old a number may be.
//
// # Usage
//
//	c, err := stats.New(stats.Config{NodeName: "n1", Runtime: rt, Cgroups: tree, Root: os.DirFS("/")})
//	go c.Run(ctx)                          // keeps the cache warm
//	summary, err := c.Summary(ctx, false)  // from the cache
//	summary, err = c.Summary(ctx, true)    // node and disks as they are now, pods of this second (st-4)
//
// # Concurrency
//
// All methods may be called from any goroutine. Of several that find the cache too
// old one collects, and the others wait for it.
//
// # Guarantees and limits
//
//   - A number that nobody has is absent, never zero.
//   - A runtime that fails leaves the node's numbers: the error comes with a summary
//     that has them.
//   - A summary is shared by those who ask: don't change it.
//   - Logs are one directory per container, which is listed, not walked. At most
//     10,000 entries of a directory count.
//
// # Differences from the kubelet
//
//   - No cadvisor: numbers of the node are read when they are asked for (F-70).
//   - One provider: CRI first, cgroups fill in per field (st-13, F-69).
//   - Images' inodes are those of the mountpoint's own file system (st-8).
//   - Termination messages count as ephemeral storage, and they and the hosts file with
//     the blocks that they take up on disk.
//   - Not there: user-defined metrics, accelerators.
//
// # Testing
//
// rules_test.go lists each rule with the test that names it; the node is a directory
// tree, the cgroups are in memory.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package stats
