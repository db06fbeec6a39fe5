// Package imagegc decides which images leave a node, and when.
//
// # What it decides
//
// [MakePlan] is a pure function from what is known of the images, the space there
// is, and a [Policy] to what is decided of each image, and why. [Detect] is the one
// from what a runtime lists to what is known. A [Manager] applies them: what nobody
// has used for too long goes for its age, and when the file system is fuller than
// it should be, the images that were used longest ago go until it is not.
//
// # Usage
//
//	m, err := imagegc.New(imagegc.Config{
//		Store: rt,                       // a runtime.ImageStore, such as cri.Runtime
//		Space: imagegc.SpaceOf(rt),
//		Pods:  func() []*v1.Pod { … },   // that run here, or may yet start
//		Path:  "/var/lib/agent/images.json",
//	})
//	go m.Run(ctx)                            // a pass in five minutes
//	report, err := m.Collect(ctx)            // one pass
//	plan, err := m.DryRun(ctx)               // what it would do, and why
//	freed, err := m.DeleteUnused(ctx)        // before a pod is evicted
//	release, err := m.HoldPod(ctx, pod)      // around what starts a pod
//	images := m.NodeImages(ctx, 50)          // for the status of the node
//
// # Concurrency
//
// All methods may be called from anywhere. Passes are made one after the other, and
// the functions of the Config are called by them, without a lock. A hold does not
// wait for a pass, but for the removal of the very image that it is about.
//
// # Guarantees and limits
//
// An image is not removed while a container of it is there, running or not, while it
// is mounted as a volume, while a pod of Config.Pods names it, or while it is held.
// That covers the time between the look whether an image is there and the making of
// its container, if whoever starts pods holds their images (F-34).
//
// A pass stops when as much space is free as there should be, measured after each
// image (F-30): what images share is freed by the last of them, so that more of them
// go than their sizes would say; and where others fill the disk meanwhile, all go
// that may. When that is not enough, the error says who has the space (F-32). A part
// of a pass that fails does not keep the next from being done (F-33).
//
// When images were first seen and last used is on record (Config.Path), so that a
// restart of the agent makes none younger (F-28). What was used and let go between
// two passes counts as used when it was last seen so. A record that is lost, or a
// clock that was wrong, makes images new: they stay longer.
//
// A runtime that frees space some time after it said that an image is removed makes
// more images go than need be.
//
// # Differences from the kubelet
//
//   - Ages outlive the agent (ig-6, nq-8); without Config.Path they don't.
//   - What was freed is measured (ig-13, nq-8); Config.SumOfSizes adds the sizes up
//     and stops too early, as the kubelet does.
//   - Errors in the removal of old images don't skip the pass for space (ig-15,
//     nq-8).
//   - Images of pods that are wanted stay though no container of theirs is there, and
//     none goes before all pods are known.
//   - An image that is mounted stays also on runtimes that keep images by runtime
//     handler (ig-7, nq-9).
//   - The age of an image that was never used counts from when it came (ig-10): a
//     kubelet removes it as soon as images have been looked after for MaxAge.
//   - Lists of what to keep and what not to have, the last tags of a repository, and
//     ages by pattern are not the kubelet's (F-31). There is a reason more for its
//     metric: "denied".
//   - The list for the node's status is made when it is asked for, and not each 30
//     seconds (ig-18).
//
// # Testing
//
// testdata/*.txt are stories of a disk in virtual time; -update rewrites what they
// lead to. Random inputs check the laws of plans and print their seed, and a thousand
// pods start while images are removed as fast as can be.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package imagegc
