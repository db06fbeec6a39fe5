// Package imagegc removes unused images from a node.
//
// [Inputs.Plan] is a pure function from the records of the images, the disk space and a
// [Policy] to a [Plan]: a decision for each image, with its reason. A [Manager] lists the
// images and their users, makes plans and carries them out. Images that have been unused for
// too long are removed; if the file system is fuller than the policy permits, more are
// removed in rank order, by default the least recently used first.
//
// # Usage
//
// ExampleManager_Collect is such a program with a disk in memory:
//
//	m, err := imagegc.New(imagegc.Config{
//		Store: rt,                                        // a runtime.ImageStore, such as cri.Runtime
//		Space: imagegc.SpaceOf(rt),
//		Pods:  func() (pods []*v1.Pod, synced bool) { … }, // pods that run here or may start
//		Path:  "/var/lib/agent/images.json",
//	})
//	go m.Run(ctx)                            // a pass every five minutes
//	report, err := m.Collect(ctx)            // one pass
//	plan, err := m.DryRun(ctx)               // the decisions of a pass, with their reasons
//	freed, err := m.DeleteUnused(ctx)        // before a pod is evicted
//	release, err := m.AcquireImages(ctx, pod)      // while a pod is started
//	images := m.NodeImages(ctx, 50)          // for the node status
//
// To replace the ranking, set [Policy.Rank].
//
// # Concurrency
//
// All methods are safe for concurrent use. Run must be called once; a second call returns an
// error. Passes do not overlap; they call the functions of Config without holding a lock.
// AcquireImages does not wait for a pass, but for the removal of an image that it holds.
//
// # Guarantees and limits
//
// An image is not removed while it has a container, running or not, while it is mounted as a
// volume, while a pod of Config.Pods uses it, or while it is held. A hold covers the time
// between the check whether an image is present and the creation of its container, if the
// component that starts pods holds their images.
//
// A pass ends when enough space is available, measured after each removal: shared layers are
// freed with the last image that has them, so that more images are removed than their sizes
// suggest, and if something else fills the disk meanwhile, all candidates are removed. If the
// space does not suffice, the error lists the largest consumers. The failure of one part of a
// pass does not prevent the others.
//
// The times when images were first detected and last used are stored in Config.Path, so a
// restart of the agent does not reset their ages. An image that was used and released between
// two passes counts as used when it was released. If the checkpoint is lost, or the clock was
// wrong, images count as new and are kept longer.
//
// If a runtime frees space some time after it reports an image as removed, more images are
// removed than necessary.
//
// # Differences from the kubelet
//
//   - Ages survive a restart of the agent if Config.Path is set.
//   - Freed space is measured; the kubelet adds up image sizes, which counts shared layers
//     repeatedly, and stops too early.
//   - Errors in the removal of old images do not prevent the removal for space.
//   - Images of desired pods are kept even without a container, and no image is removed
//     before all pods are known.
//   - A mounted image is kept also on runtimes that store images by runtime handler.
//   - The age of an image that was never used starts when it was detected. The kubelet
//     removes such an image once image garbage collection has run for MaxAge.
//   - Patterns of images to keep or remove, a number of tags to keep for each repository,
//     ages by pattern and a custom ranking are additions. The removal metric has the
//     additional reason "denied".
//   - The list for the node status is created on request instead of every 30 seconds.
//
// # Testing
//
// testdata/*.txt are scenarios of a disk in virtual time; -update rewrites their expected
// results. Invariants of plans are checked with random inputs, whose seed is printed, and a
// thousand pods start while images are removed continuously.
//
// # Stability
//
// Growing: a minor version may change the API, and CHANGELOG.md describes how to migrate.
package imagegc
