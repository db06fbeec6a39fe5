// Package manifest decodes, defaults and validates the manifests of pods.
//
// # Behavior
//
// The package determines whether a manifest is a pod that a node can run, and the values that an API
// server would have added to it: [Decode] is strict, [Default] sets the default values, [Validate] reports
// invalid ones. [Static] does all three and gives the pod the name, UID and annotations of
// a static pod; [Split] separates a list of pods. Package podsource reads manifests from
// files and web servers.
//
// # Usage
//
//	pod, err := manifest.Decode(data)
//	…
//	pod = manifest.Default(pod)
//	if errs := manifest.Validate(pod); len(errs) > 0 {
//		…
//	}
//
// # Concurrency
//
// All functions are safe for concurrent use and do not change their arguments.
//
// # Guarantees and limits
//
//   - The cost of a manifest is bounded: see [Decode] and [Split]. An error is one line
//     of at most 4 KiB and names at most 20 fields.
//   - The UID of a static pod depends on the manifest's content (not on its layout or
//     comments), the node's name and the origin. It is the UID that a kubelet of Kubernetes
//     1.37 gives to it, or that of 1.34 to 1.38 under which the pod exists: see
//     StaticOptions.Exists.
//   - The comment on [Validate] lists the fields that are not checked.
//
// # Differences from the kubelet
//
//   - Unknown fields, duplicate keys and further documents are errors, and so is the saved
//     manifest of a mirror pod.
//   - The annotation config.hash is derived from the content also if the manifest has a UID.
//   - Static pods of kubelets since 1.34 keep their UIDs. A kubelet restarts the static pods
//     of one of another minor version.
//
// # Testing
//
// Tables; FuzzDecode decodes, defaults and validates arbitrary text.
//
// # Stability
//
// Settled: a change that breaks a caller is announced a minor version before it.
package manifest
