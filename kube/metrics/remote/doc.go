// Package remote provides the metrics of packages that use gRPC: the CRI runtime, CSI
// and DRA drivers, device plugins, and the pod resources API. It is separate from package metrics,
// which does not depend on gRPC.
//
// # Behavior
//
// The metric of the kubelet for each hook of runtime/cri, cm/device, cm/dra, cm/dra/registry, cm/podresources
// and volume/csi; docs/metrics.md lists them.
//
// # Usage
//
//	m, err := metrics.New(metrics.Config{NodeName: "n1"})
//	r, err := remote.New(m)
//	rt, err := cri.New(cri.Config{Hooks: r.Runtime(), …})
//
// # Concurrency
//
// Everything is safe for concurrent use.
//
// # Guarantees and limits
//
// Those of package metrics. New must be called once for a metrics.Metrics.
//
// # Differences from the kubelet
//
//   - dra_operations_duration_seconds does not count pods without resource claims.
//   - There is no metric of host process containers, which are not supported.
//
// # Testing
//
// The tests of package metrics compare the metrics with those of the kubelet.
//
// # Stability
//
// Growing: the API will be extended; a minor version may change it, and CHANGELOG.md
// describes how to migrate.
package remote
