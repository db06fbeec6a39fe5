// Package criproxy contains a CRI server that forwards every call to another one and records
// it: the requests of a node agent become data that a test can compare.
//
// # Behavior
//
// The proxy forwards messages as bytes, so that it also passes on fields and methods that its
// version of the CRI does not define. It decodes recorded messages with the descriptors of
// k8s.io/cri-api; it does not contain code for a particular method.
//
// # Usage
//
//	p, err := criproxy.New(criproxy.Config{Listen: socket, Upstream: daemon.Endpoint})
//	// start an agent with the endpoint "unix://" + socket
//	p.Close()
//	for _, call := range p.Calls() { ... }
//
// # Concurrency
//
// All methods are safe for concurrent use. Calls are forwarded concurrently, as they arrive.
//
// # Guarantees and limits
//
// A call has one request, as all methods of the CRI do. The number and the total size of
// recorded calls are bounded; calls beyond them are forwarded and counted.
package criproxy
