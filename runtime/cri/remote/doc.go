// Package remote connects to a CRI runtime over a unix socket.
//
// [Dial] sets the timeouts of the calls and the message size, and checks that the
// runtime answers a Version call. Package runtime/cri runs pods with the services of
// the returned [Client].
//
// # Usage
//
// Dial "unix:///run/containerd/containerd.sock" and pass the [Client]'s two services
// to cri.New. It is a separate package so that the engine can be imported without the
// gRPC client, for plain processes or a fake.
//
// # Concurrency
//
// Both services are safe for concurrent use.
//
// # Guarantees and limits
//
// The package wraps k8s.io/cri-client, the client of the kubelet. A lost connection is
// reestablished automatically, with a back-off from 100 ms to 3 s. Calls are
// traced if Config.TracerProvider is set; an endless stream has one span.
//
// # Differences from the kubelet
//
// The log messages of the client about failed calls, which it also returns, go to
// Config.Logger at the debug level.
//
// # Testing
//
// The example serves a runtime on a socket; the integration suite dials real ones.
//
// # Stability
//
// Settled: a change that breaks a caller is announced a minor version before it.
package remote
