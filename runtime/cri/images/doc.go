// Package images sees that the images of pods are present on a CRI runtime, the
// way the kubelet does.
//
// # What it decides
//
// Whether an image has to be pulled (its pull policy, what is there, and who may
// use that), with which of a pod's credentials, when (its turn, the limit of
// pulls a second, the back-off after failures), and what the pod is told: waiting
// reasons, messages and events are the kubelet's, byte for byte.
//
// # Usage
//
// Make one [Manager] for a node with [New] and ask [Manager.Ensure] for an image
// before each container is created; [Manager.EnsureAll] for several at once, such
// as all of a pod before its first container is started; [Manager.EnsureVolumes]
// for images that are volumes. Call [Manager.Forget] when a pod is gone, and
// [Manager.Prune] after unused images were removed. Where credentials come from
// is for the caller to say: see [Credentials].
//
// # Concurrency
//
// All methods may be called from many goroutines. A pull runs on a goroutine of
// its own, because several callers may share it; it is called off when the last
// of them has left, and ends as soon as the runtime's PullImage returns. No
// goroutine is there while nothing is pulled. Functions of the Config and of a
// Request are called without a lock.
//
// # Guarantees and limits
//
//   - Every call returns at once when its context ends, whatever it waits for: a
//     look, credentials, its turn, the limit, a pull (lq-8). It then has told no
//     event of a failure, and there is no back-off from it.
//   - One image is pulled once for all pods that ask for it with the same
//     credentials while that pull is under way, also with PullAlways: the registry
//     was then asked a little earlier. The sandbox and annotations that go with
//     a shared pull are those of the pod that began it.
//   - An image that we pulled is given to those pods only that have shown
//     credentials for its repository, or to all if none, or the node's, were
//     needed (KEP-2535). That holds over restarts, crashes in the middle of a
//     pull, calls that were called off and answers that were lost: a pull leaves
//     its intent behind until its end is known. A record that cannot be read
//     counts as a pull with unknown credentials.
//   - The records are files in the format of the kubelet 1.35 and later; those of
//     1.33 and 1.34 are read too. They are read when they are needed, and held in
//     memory then: two managers must not work on one directory at a time. The
//     hashes in them are those that [Credentials] gives: for a node that changes
//     between us and a kubelet, secrets with other hashes are still known by their
//     UIDs.
//   - Failures are remembered until they are forgotten by [Backoff], and not
//     across a restart.
//
// # Differences from the kubelet
//
//   - Who is over the limit of QPS waits instead of failing (lq-16), and new pull
//     secrets end a back-off (lq-17); [Compat] has the kubelet's way of both.
//   - A deleted pod does not wait for its pulls, which end (img-17).
//   - All images of a pod can be pulled at once (lq-15).
//   - An image name that no registry could have is asked of the runtime before it
//     is refused.
//   - A repository in a record is known by all its spellings: busybox and
//     docker.io/library/busybox are the same.
//   - A pull of which the answer was lost counts as begun by us until it is known
//     how it ended; the kubelet forgets about it, and takes the image for
//     preloaded.
//   - Failures of looking up credentials are in the message of the pull that
//     fails for them.
//
// The kubelet sends the runtime handler of a pod with its pulls only with the
// feature gate RuntimeClassInImageCriApi, which is off: callers leave
// [Request].RuntimeHandler empty to do as it does.
//
// # Testing
//
// The unit tests run on an image service in memory, in virtual time; their tables
// are named after the rules. What real containerds do with credentials is shown
// by the integration tests of package cri (docs/integration.md), with a registry
// in the test's process.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package images
