// Package cluster provides the metrics of a node that are related to its cluster: requests
// to the API server, registration, and requests to the node with their authentication and
// authorization. It is separate from package metrics, which does not depend on client-go.
//
// # Behavior
//
// The metric of the kubelet for each hook of kube/node, kube/auth, kube/certs, kube/client
// and kube/server; docs/metrics.md lists them.
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
// Everything is safe for concurrent use.
//
// # Guarantees and limits
//
// Those of package metrics. New must be called once for a metrics.Metrics. Requests are
// counted per node; the metrics of client-go itself are per process.
//
// # Differences from the kubelet
//
//   - long_running is true for portForward, too (rule sv-12).
//
// # Testing
//
// The tests of package metrics compare the metrics with those of the kubelet.
//
// # Stability
//
// Growing: the API will be extended; a minor version may change it, and CHANGELOG.md
// describes how to migrate.
package cluster
