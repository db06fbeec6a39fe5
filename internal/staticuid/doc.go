// Package staticuid computes the UIDs that kubelets give to static pods.
//
// # Behavior
//
// A kubelet identifies a static pod whose manifest has no UID by a hash of the pod, the
// node's name and the path of the manifest, or of the pod and the URL. A node that computes
// the same UID takes over the pods of a kubelet, and gives its own back, without a restart.
//
// The hash covers the names and types of all fields of the internal types of Kubernetes,
// also of empty ones. Each minor version has others, so that a kubelet restarts the static
// pods of a kubelet of another minor version. [Release.UID] has the layouts of the types of
// each of the [Releases] in a table.
//
// # Usage
//
//	for _, r := range staticuid.Releases {
//		uid := r.UID(pod, staticuid.Origin{Node: "node-1", File: "/etc/kubernetes/manifests/etcd.yaml"})
//		…
//	}
//
// # Concurrency
//
// Safe for concurrent use.
//
// # Guarantees and limits
//
// A quantity that is no int64, such as "1.5Gi", or one of more than 18 digits, is represented in
// another way since 1.38: its pod has the UID of 1.38 only if this program is built with the library
// of 1.38, and those of earlier releases only if it is not. A quantity in the pod must
// not have been formatted before, which changes its representation. A time in the pod's
// metadata has a value that depends on the time zone of the kubelet's process.
//
// # Differences from the kubelet
//
// Those of 1.34 to 1.38 are known, of 1.38 that of v1.38.0-beta.0, which may change until the
// release. hack/podlayout.sh prints the layout of another one.
//
// # Testing
//
// The UIDs in podsource/manifest/testdata were observed: real kubelets of the releases
// were given its manifests.
//
// # Stability
//
// Internal.
package staticuid
