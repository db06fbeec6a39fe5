// Package metrics counts what happens on a node for Prometheus, with the names, labels
// and buckets of a kubelet's metrics, so that dashboards and alerts made for kubelets
// work. docs/metrics.md lists them all.
//
// # What it decides
//
// Which metric each hook of the packages becomes, and what a scrape of /metrics,
// /metrics/resource, /metrics/cadvisor, /metrics/probes and /metrics/slis answers
// (st-16 … st-18). What has no name on a kubelet is called kubeparts_….
//
// Package remote has the metrics of what speaks gRPC, and package cluster those of what
// speaks to the API server, so that an agent without them need not link them.
//
// # Usage
//
//	m, err := metrics.New(metrics.Config{NodeName: "n1"})
//	gen, err := pleg.New(pleg.Config{Hooks: m.PLEG(), …})  // and so on for each part
//	…
//	for path, handler := range m.Handlers(metrics.Sources{RuntimePods: gen.Pods, …}) {
//		mux.Handle(path, handler)                          // or server.Config.Metrics
//	}
//
// Hooks are structs of funcs: who wants to be told as well sets a func that calls both.
//
// # Concurrency
//
// Everything may be called from any goroutine. Nothing is started: what is not counted
// is read when somebody scrapes, for as long as Sources.Timeout.
//
// # Guarantees and limits
//
//   - Each Metrics has registries of its own: several nodes can be in one process.
//   - A hook costs less than a microsecond and allocates nothing (bench_test.go).
//   - What a part cannot tell at a scrape is left out; the rest is answered.
//   - A number that nobody has is absent, never zero.
//   - Series of pods go with their pods, but for counters by reason or type, of which
//     there are few.
//
// # Differences from the kubelet
//
//   - /metrics/cadvisor has what the summary API and cgroups tell: one row for the node,
//     each pod and each container. The label device is empty: disks are summed up.
//   - kubelet_pleg_discard_events is always 0: nothing is dropped.
//   - operation_type of kubelet_pod_worker_duration_seconds is create, sync, terminate
//     or cleanup; a kubelet's update is a sync here.
//   - prober_probe_total counts no run that could not be carried out (prober-26).
//   - Helps are in our words.
//
// # Testing
//
// The tests scrape a node all of whose hooks were called, read it with the Prometheus
// library, lint it, and compare it with testdata/kubelet.txt and testdata/cadvisor.txt:
// the metrics of a kubelet, each served or with the reason why not.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package metrics
