// Package serve makes a CRI runtime that is in this program a server of CRI v1,
// for clients that want a socket: crictl, a kubelet, another process.
//
// # What it decides
//
// How the calls of the CRI over gRPC become those of the Go interfaces of
// k8s.io/cri-api, what code an error has on the wire, and how exec, attach and
// port-forward are served as streams. What a runtime does is the runtime's:
// process.Runtime and fakecri.Runtime are two.
//
// # Usage
//
//	listener, err := serve.Listen(ctx, "unix:///run/mine.sock")
//	server, err := serve.New(serve.Config{Listener: listener, Runtime: rt, Images: rt, Streams: rt})
//	err = server.Run(ctx)
//
// The Close of a service is not called: it is the caller's.
//
// # Concurrency
//
// Calls arrive on many goroutines, and so the services are called. Each call's
// context ends when its client has gone, its time is over, or Run ends. Run
// returns after all of them.
//
// # Guarantees and limits
//
//   - Every call of CRI v1 as of v0.37 is passed on; one that is new does not
//     compile until it is.
//   - An error that has or wraps a gRPC status keeps its code, those of contexts
//     have theirs, errors.ErrUnsupported is Unimplemented, and the rest Unknown.
//     An ExecSync whose error is a utilexec.ExitError is answered with its code.
//   - Messages may have 16 MiB. Lists in pieces (StreamContainers and the like)
//     have pieces of about 1 MiB.
//   - A URL of a stream is a secret, good for one connection within a minute; a
//     thousand may wait. Streams speak SPDY/3.1 and WebSocket, without TLS.
//   - A stream's context ends when its client has gone. A client that connects
//     and opens no streams may hold up the end of Run for 10 seconds.
//   - A client that goes in the very moment in which its forwarded port is
//     accepted or refused leaves one parked goroutine of the library's behind.
//   - The library that speaks the protocols reports failed streams to klog as
//     well, which writes to stderr unless it is told otherwise.
//
// # Differences from the kubelet
//
// The kubelet is a client of this. Runtimes use the streaming server of
// k8s.io/cri-streaming; here the parts below it are used, because that server
// does not tell the runtime when the client of a forwarded port has gone, and
// does not end its streams when it is stopped.
//
// # Testing
//
// The tests call every method of the services by reflection, and use what the
// kubelet uses: the official client, and package runtime/cri/streaming.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package serve
