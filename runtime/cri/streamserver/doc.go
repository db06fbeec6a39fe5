// Package streamserver is the server side of the protocols in which clients bring the
// streams of a process: remotecommand (exec and attach) over SPDY/3.1 and WebSocket, and
// port-forward. kube/server and runtime/cri/serve use it. Package runtime/cri/streaming is
// the client side.
//
// k8s.io/cri-streaming serves the protocols that all CRI runtimes support;
// v5.channel.k8s.io, in which a client can close its input, is implemented here. A stream
// ends when the client disconnects, when it was idle for Server.Idle, or when the request's
// context is done.
//
// # Usage
//
// [Server.Exec], [Server.Attach] and [Server.PortForward] are called by an http.Handler that has authorized the
// request and decoded its URL:
//
//	server.Exec(w, r, options, func(ctx context.Context, s runtime.Streams) (int32, error) {
//		return rt.StreamExec(ctx, id, cmd, s)
//	})
//
// A handler that passes a connection on without serving its protocol uses a [Client].
//
// # Concurrency
//
// All methods are safe for concurrent use, for different requests.
//
// # Guarantees and limits
//
//   - [Server.Exec], [Server.Attach] and [Server.PortForward] return when the streams are no longer used.
//   - A client that upgrades its connection and opens no streams blocks the call for up to
//     Server.Creation.
//   - While the input of a client is not read, its disconnection is detected only by a
//     write or after Server.Idle: the protocols multiplex all streams in one connection.
//   - A client that disconnects at the moment in which its forwarded port is accepted or
//     rejected leaves one blocked goroutine of the library behind.
//   - The library logs failed streams to klog as well.
//
// # Differences from the kubelet
//
// The kubelet proxies streams to the runtime's server and serves none itself.
//
// # Testing
//
// The tests of kube/server and runtime/cri/serve run real clients against it: kubectl's,
// containerd's, and clients that violate the protocols.
//
// # Stability
//
// Experimental: expect it to change.
package streamserver
