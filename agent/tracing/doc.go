// Package tracing creates OpenTelemetry spans for what an agent does: the syncs of pods,
// garbage collection, and requests to its API.
//
// # Behavior
//
// The methods of a [Tracer] are the functions that other packages call, as Trace, when an
// operation begins. Each starts a span and returns a context with it, so that the spans of
// calls within the operation are its children. Those of CRI calls are created by the
// connection to the runtime: remote.Config.TracerProvider.
//
//	syncPod                     podworker.Hooks.Trace, call of Sync
//	syncTerminatingPod          call of Terminate
//	syncTerminatedPod           call of Cleanup
//	Containers/GarbageCollect   runtime.GarbageCollector
//	Images/GarbageCollect       imagegc.Hooks.Trace
//	the route of a request      server.Config.Trace, such as /exec/{namespace}/{pod}/{container}
//
// The first five names, and their attributes, are those of the kubelet. docs/tracing.md has
// the spans of the start of a pod.
//
// # Usage
//
//	tracer := tracing.New(provider)
//	worker.Hooks.Trace = tracer.Pod
//	images.Hooks.Trace = tracer.ImageGC
//	loop.Garbage = tracer.Garbage(loop.Garbage)
//	api.Trace = tracer.Request
//
// The provider, with the exporter and the sampling, is the program's. kube/kubelet makes one
// from the field tracing of a KubeletConfiguration.
//
// # Concurrency
//
// All methods are safe for concurrent use if the provider is.
//
// # Guarantees and limits
//
//   - The package imports the API of OpenTelemetry, but neither its SDK nor an exporter, and
//     does not use the global provider.
//   - Errors of operations become the status of their spans. They may contain what the
//     status of a pod contains, but spans contain neither environments nor commands.
//   - The path and the user agent of a request are cut off after 1 KiB.
//   - The span of a request continues that of its client (W3C trace context), whose sampling
//     decision it takes over. The span of a request to the read-only API, which any client may
//     send, is the root of a trace, with a link to the span of the client.
//
// # Differences from the kubelet
//
//   - syncTerminatedPod, Containers/GarbageCollect and Images/GarbageCollect have a status.
//   - Containers/GarbageCollect contains the volumes and cgroups of removed pods.
//   - k8s.pod.update_type is create for the first call and sync for others.
//
// # Testing
//
// With a provider that records spans. A test of kube/kubelet exports the spans of the start
// of a pod on a CRI runtime behind a socket.
//
// # Stability
//
// Experimental: the API will change.
package tracing
