// Package podsapi serves the pods of a node to programs on it: the pods API of the kubelet
// (KEP-4188, v1alpha1), by gRPC on a unix socket.
//
// # Behavior
//
// A [Server] implements ListPods, GetPod and WatchPods with the pods that the node runs or
// should run, and the statuses that the node has computed, which may be newer than those of
// the API server. Programs such as monitors and network agents need neither credentials nor
// the API server for it.
//
// WatchPods sends ADDED for each pod, then INITIAL_SYNC_COMPLETE, and from then on the pods
// that have changed. The agent reports changes with [Server.PodChanged]. A client that reads
// slowly receives the latest state of each pod that has changed, not each change: a watch
// needs memory for the UIDs of pods only, and no event is dropped.
//
// # Usage
//
//	server, err := podsapi.New(podsapi.Config{
//		Socket: "/var/lib/kubelet/pods-api/pods-api.sock", Pods: pods,
//	})
//	err = server.Run(ctx)
//
// # Concurrency
//
// Calls are handled concurrently on goroutines of the server; the Pods must
// be safe for concurrent use. PodChanged does not block.
//
// # Guarantees and limits
//
//   - The socket is in a directory that only its owner and its group may access. Pods contain
//     the values of environment variables.
//   - A socket without a server is replaced, any other file is not. Requests
//     have at most 64 KiB, and a client cannot delay the end of Run.
//   - Config.QPS limits the calls of all clients together; calls above it fail with
//     "rejected by rate limit". At most Config.MaxWatches watches are in progress.
//   - The last event of a watch has the state after the last PodChanged.
//   - A pod without a computed status is not ready, whatever its object contains: the
//     containers that an earlier agent started have not been inspected.
//   - Until the sources of pods have synced, calls fail with FailedPrecondition.
//
// # Differences from the kubelet
//
//   - The rate limit applies to WatchPods, too, and the number of watches is limited.
//   - The kubelet ends the watch of a client that is 100 events behind, and may drop events.
//   - An unchanged pod is not sent again.
//
// # Testing
//
// Over the socket, with a client that does not read; the events of random changes are
// compared with the pods.
//
// # Stability
//
// Experimental: the API will change.
package podsapi
