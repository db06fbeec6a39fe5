// Package remote connects to a CRI runtime at a socket.
//
// # What it decides
//
// How to reach a runtime: the address, the time-outs of the calls, the size of the
// messages, and that it answers a Version call at all. What is asked of it is the
// caller's: package runtime/cri runs pods with what [Dial] returns.
//
// # Usage
//
// Dial "unix:///run/containerd/containerd.sock" and hand the [Client]'s two
// services to cri.New. It is a package of its own so that the engine can be had
// without it: over plain processes, or over a fake.
//
// # Concurrency
//
// Both services may be used from many goroutines.
//
// # Guarantees and limits
//
// The work is done by k8s.io/cri-client, the kubelet's own. A connection that
// breaks is made again by itself, with a back-off from 100 ms to 3 s. Tracing is
// off.
//
// # Differences from the kubelet
//
// What the client logs about failed calls, which it also returns, goes to
// Config.Logger at the debug level.
//
// # Testing
//
// The example serves a runtime on a socket of its own; the integration suite
// dials real ones.
//
// # Stability
//
// Settled: a change that breaks a caller is announced a minor version before it.
package remote
