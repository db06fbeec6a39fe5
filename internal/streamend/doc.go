// Package streamend is the server's end of the protocols in which clients bring the
// streams of a program: remotecommand (exec, attach) over SPDY/3.1 and WebSocket,
// and port-forward. It is shared by runtime/cri/serve and kube/server.
//
// # What it decides
//
// Who speaks: k8s.io/cri-streaming has what all CRI runtimes have; v5.channel.k8s.io,
// in which a client can end its input, is spoken here. When a stream is over: when
// the client has gone, has been silent for too long, or the request's context ends.
//
// # Guarantees and limits
//
//   - [Exec], [Attach] and [PortForward] return when nothing uses the streams any more.
//   - A client that connects and opens no streams may hold a call up for
//     Timeouts.Creation.
//   - A client whose input nobody reads is not heard to leave before somebody writes
//     to it, or Timeouts.Idle is over: that is how the protocols are read.
//   - A client that goes in the very moment in which its forwarded port is accepted
//     or refused leaves one parked goroutine of the library's behind.
//   - The library reports failed streams to klog as well.
package streamend
