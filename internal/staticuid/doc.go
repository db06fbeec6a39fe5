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
// A quantity in the pod must not have been formatted before, which changes its
// representation. A time in the pod's metadata has a value that depends on the time zone
// of the kubelet's process.
//
// # Differences from the kubelet
//
// Those of 1.34 to 1.37 are known. hack/podlayout.sh prints the layout of another one.
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
