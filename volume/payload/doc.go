// Package payload computes the files of ConfigMap, Secret, downward API and projected volumes from
// objects and pods: paths, contents, modes, owners. volume/atomic writes them.
//
// # Behavior
//
// [ConfigMap], [Secret] and [DownwardAPI] turn one source into an
// [atomic.Payload]; [Projected] merges several, in order; a
// [Fetcher] fetches what they refer to. [TrustAnchors] merges certificates.
//
// # Usage
//
//	files, err := payload.ConfigMap(cm, source.Items, payload.Defaults{Mode: source.DefaultMode}, optional)
//	if err != nil {
//		// event: MountVolume.SetUp failed for volume "config" : err
//	}
//	_, err = atomic.Write(dir, files, atomic.Options{})
//
// # Concurrency
//
// All functions are safe for concurrent use if the methods of [Sources] are.
//
// # Guarantees and limits
//
//   - A function that returns an error returns no payload.
//   - Equal inputs result in equal files.
//   - Paths are validated by volume/atomic.
//
// # Differences from the kubelet
//
//   - If defaultMode is not set, the API's default 0644 is used; the kubelet rejects the volume.
//   - Trust anchors are sorted; the kubelet shuffles them.
//
// # Testing
//
// Table tests with a case for each rule.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package payload
