// Package metrics provides the Prometheus metrics of a node, with the names, labels and
// buckets of the kubelet, so that dashboards and alerts for kubelets work. docs/metrics.md
// lists them.
//
// # Behavior
//
// The metric of each hook of the packages, and the metrics at /metrics, /metrics/resource,
// /metrics/cadvisor, /metrics/probes and /metrics/slis (rules st-16 to st-18). Metrics that
// the kubelet does not have are named kubeparts_….
//
// Package remote has the metrics of packages that use gRPC, and package cluster those of
// packages that use the API server, so that an agent without them does not depend on these
// libraries.
//
// # Usage
//
//	m, err := metrics.New(metrics.Config{NodeName: "n1"})
//	gen, err := pleg.New(pleg.Config{Hooks: m.PLEG(), …})  // the same for each package
//	…
//	for path, handler := range m.Handlers(metrics.Sources{Runtime: gen, …}) {
//		mux.Handle(path, handler)                          // or server.Node.Metrics
//	}
//
// Hooks are structs of functions: a caller that needs a hook itself sets a function that
// calls both.
//
// # Concurrency
//
// Everything is safe for concurrent use. There are no goroutines: what is not counted is
// read at a scrape, within Sources.Timeout.
//
// # Guarantees and limits
//
//   - Each Metrics has its own registries: several nodes can run in one process.
//   - A hook takes less than a microsecond and does not allocate (bench_test.go).
//   - If a source fails at a scrape, its metrics are absent; the others are served.
//   - Unknown values are absent, never zero.
//   - Series of pods are removed with their pods, except counters by reason or type, whose
//     number is bounded.
//
// # Differences from the kubelet
//
//   - /metrics/cadvisor has the data of the summary API and of cgroups: one row for the
//     node, each pod and each container. The label device is empty: disks are summed up.
//   - With Sources.PodMetrics, metrics that do not match a descriptor of the runtime set
//     container_scrape_error; the kubelet logs them. The descriptors are read at the first
//     scrape instead of at the start.
//   - kubelet_pleg_discard_events is always 0: no event is dropped.
//   - operation_type of kubelet_pod_worker_duration_seconds and of
//     kubelet_pod_worker_errors_total is never update: the kubelet's update is a sync.
//   - prober_probe_total does not count attempts that could not be made (rule prober-26).
//   - Help texts differ.
//
// # Testing
//
// Tests scrape a node whose hooks were all called, parse the result with the Prometheus
// library, lint it, and compare it with testdata/kubelet.txt and testdata/cadvisor.txt: the
// metrics of the kubelet, each of which is served, or listed with the reason why not.
//
// # Stability
//
// Growing: the API will be extended; a minor version may change it, and CHANGELOG.md
// describes how to migrate.
package metrics
