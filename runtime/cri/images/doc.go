// Package images makes the images of pods available on a CRI runtime, as the kubelet does.
//
// A [Manager] decides whether an image is pulled (by its pull policy, its presence, and
// whether the pod may use the present one), with which of the pod's credentials, and when (a
// limit on concurrent pulls, a limit on pulls per second, back-off after failures). Waiting
// reasons, messages and events are the kubelet's, byte for byte.
//
// # Usage
//
// Create one [Manager] per node with [New]. Call [Manager.Ensure] before each container is
// created, [Manager.EnsureAll] for several images, such as all of a pod before its first
// container is started, and [Manager.EnsureVolumes] for image volumes. Call [Manager.Forget]
// after a pod was deleted, and [Manager.Prune] after unused images were removed. The caller
// supplies the credentials; see [Credentials].
//
// # Concurrency
//
// A Manager is safe for concurrent use. A pull runs on its own goroutine, because several
// callers may share it; it is canceled when the contexts of all of them are done, and ends when
// the runtime's PullImage returns. While nothing is pulled there are no goroutines. Functions
// of the Config and of a Request are called without a lock.
//
// # Guarantees and limits
//
//   - Every call returns promptly when its context is done. It then records no event of a
//     failure, and no back-off begins.
//   - Concurrent requests for one image with the same credentials share one pull, also with
//     PullAlways. A shared pull has the sandbox and annotations of the pod that began
//     it.
//   - A pulled image may be used only by pods that presented credentials for its repository, or
//     by all pods if the pull was anonymous or used the node's credentials (KEP-2535). This
//     holds after restarts, crashes during a pull, canceled calls and lost results: the intent
//     of a pull is recorded until its outcome is known. A record that cannot be read counts as
//     a pull with unknown credentials.
//   - Records have the format of the kubelet 1.35 and later; those of 1.33 and 1.34 are read.
//     They are cached in memory, so two managers must not use one directory at the same time.
//     Their hashes are those of [Credentials]; if a kubelet and an agent hash secrets
//     differently, records of the other still match by the UIDs of secrets.
//   - Failures are kept in memory until [Backoff] forgets them, and not across restarts.
//
// # Differences from the kubelet
//
//   - Pulls that exceed QPS wait instead of failing, unless Config.RefuseOverQPS is set. A
//     change of the pull secrets ends a back-off.
//   - The deletion of a pod cancels its pulls.
//   - All images of a pod can be pulled concurrently.
//   - For an invalid image reference, the runtime is asked first, because it may have an image
//     of that name.
//   - Repositories in records are compared in normalized form: busybox is
//     docker.io/library/busybox.
//   - A pull whose result was lost counts as a pull until its outcome is known. The kubelet
//     treats the image as preloaded.
//   - An error of looking up credentials is part of the message of the failed pull.
//
// The kubelet sends the runtime handler of a pod with its pulls only with the feature gate
// RuntimeClassInImageCriApi, which is off by default: leave [Request].RuntimeHandler empty for
// the same behavior.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package images
