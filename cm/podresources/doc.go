// Package podresources tells monitors which CPUs, memory and devices containers have:
// the pod resources API v1 at a socket.
//
// # What it decides
//
// Nothing: a [Server] asks the managers and answers List, Get and
// GetAllocatableResources (pr-1, pr-2).
//
// # Usage
//
//	server, err := podresources.New(podresources.Config{
//		Socket: "/var/lib/kubelet/pod-resources/kubelet.sock", Pods: active,
//		CPUs: cpus, Memory: memory, Devices: devices,
//	})
//	err = server.Run(ctx)
//
// # Concurrency
//
// Calls are answered at once, from goroutines of the server; Config.Pods and the
// managers have to take that.
//
// # Guarantees and limits
//
//   - All clients together are held to Config.QPS; who asks too fast is told "rejected
//     by rate limit".
//   - CPUs are told of containers only that have them for themselves.
//
// # Differences from the kubelet
//
//   - v1alpha1, which nobody has needed since 1.20, is not served.
//   - There are no dynamic resources to tell of.
//
// # Testing
//
// Over the socket, with managers of the test.
//
// # Stability
//
// Experimental: try it, and expect it to change.
package podresources
