// Package payload makes the files of ConfigMap, Secret, downward API and projected
// volumes from objects and pods: paths, contents, modes, owners. It writes none of
// them: volume/atomic does.
//
// # What it decides
//
// [ConfigMap], [Secret] and [DownwardAPI] turn one source into an
// [atomic.Payload]; [Projected] merges any number of them, in order (vol-51 …
// vol-57). [Refs] tells which objects a volume is made from. [TrustAnchors] brings
// certificates into one form.
//
// # Usage
//
//	files, err := payload.ConfigMap(cm, source.Items, payload.Defaults{Mode: source.DefaultMode}, optional)
//	if err != nil {
//		// the pod waits: MountVolume.SetUp failed for volume "config" : err
//	}
//	_, err = atomic.Write(dir, files, atomic.Options{})
//
// # Concurrency
//
// All functions are pure, but for what the [Getters] do, and may run anywhere.
//
// # Guarantees and limits
//
//   - All or nothing: with an error there is no payload (vol-54).
//   - Equal input gives equal files, byte by byte.
//   - Paths are checked when they are written, by volume/atomic.
//
// # Differences from the kubelet
//
//   - Where nobody has set a defaultMode the files get the API's default, 0644;
//     the kubelet refuses the volume.
//   - Trust anchors are in an order that depends on the certificates alone; the
//     kubelet shuffles them.
//   - podCertificate sources are an error (vol-58).
//
// # Testing
//
// Each rule is a line in a table, by number; see rules_test.go.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package payload
