// Package podresources serves the resources of containers, such as devices, to monitors:
// the pod resources API v1 at a socket, and List of v1alpha1, which has only devices.
//
// # Behavior
//
// The package decides nothing: a [Server] queries the managers and implements List, Get and
// GetAllocatableResources.
//
// # Usage
//
//	server, err := podresources.New(podresources.Config{
//		Socket: "/var/lib/kubelet/pod-resources/kubelet.sock", Pods: table,
//		CPUs: cpus, Memory: memory, Devices: devices, Claims: claims,
//	})
//	err = server.Run(ctx)
//
// # Concurrency
//
// Calls are handled concurrently on goroutines of the server; Config.Pods and the
// managers must be safe for concurrent use.
//
// # Guarantees and limits
//
//   - Config.QPS limits all clients together; calls above it fail with "rejected
//     by rate limit".
//   - A socket without a server is replaced, any other file is not. Requests
//     have at most 64 KiB, and a client cannot delay the end of Run.
//   - CPUs are reported only for containers with exclusive CPUs.
//
// # Differences from the kubelet
//
// None.
//
// # Testing
//
// Over the socket, with fake managers.
//
// # Stability
//
// Experimental: the API will change.
package podresources
