// Package cluster counts what a node has to do with its cluster: its requests to the
// API server, its registration, who asks it, and what he may. It is apart from package
// metrics, which needs no client-go.
//
// # What it decides
//
// Which metrics of a kubelet the hooks of kube/node, kube/auth, kube/certs,
// kube/client and kube/server become; docs/metrics.md lists them.
//
// # Usage
//
//	m, err := metrics.New(metrics.Config{NodeName: "n1"})
//	c, err := cluster.New(m)
//	restConfig.Wrap(c.Client)
//	n, err := node.New(node.Config{Hooks: c.Node(), …})
//
// # Concurrency
//
// Everything may be called from any goroutine.
//
// # Guarantees and limits
//
// As those of package metrics. New may be called once for a metrics.Metrics. Requests
// are counted per node: what client-go itself can tell is for a whole process.
//
// # Differences from the kubelet
//
//   - long_running is true for portForward as well, if kube/server says so (sv-12).
//
// # Testing
//
// The tests of package metrics hold all of it to the list of a kubelet's metrics.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package cluster
