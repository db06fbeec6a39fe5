// Package serve serves an in-process CRI runtime to clients over CRI v1, for
// example crictl, a kubelet or another process.
//
// A [Server] translates gRPC calls to calls of the Go interfaces of
// k8s.io/cri-api and errors to status codes, and serves exec, attach and
// port-forward as streams. process.Runtime and fakecri.Runtime can be served.
//
// # Usage
//
//	listener, err := serve.Listen(ctx, "unix:///run/mine.sock")
//	server, err := serve.New(serve.Config{Listener: listener, Runtime: rt, Images: rt, Streams: rt})
//	err = server.Run(ctx)
//
// The Close method of a service is not called; the caller must close it.
//
// # Concurrency
//
// The services are called concurrently. The context of a call is done when the
// client has disconnected, at the call's deadline, or when Run ends. Run returns
// after all calls have returned.
//
// # Guarantees and limits
//
//   - Every call of CRI v1 as of v0.37 is implemented; with a newer CRI the package
//     does not compile until new calls are implemented.
//   - An error that is or wraps a gRPC status keeps its code, errors of contexts
//     have theirs, errors.ErrUnsupported is Unimplemented, and others are Unknown.
//     An ExecSync that returns a utilexec.ExitError succeeds with its exit code.
//   - Messages are limited to 16 MiB. Streamed lists (StreamContainers and others)
//     have messages of about 1 MiB.
//   - A stream URL is a secret that is valid for one connection within a minute; at
//     most 1000 URLs can be pending. Streams use SPDY/3.1 and WebSocket, without
//     TLS.
//   - The context of a stream is done when its client has disconnected. A client
//     that connects without opening streams can delay the end of Run by 10 seconds.
//   - A client that disconnects at the moment in which its forwarded port is
//     accepted or rejected leaves one blocked goroutine of the library behind.
//   - The library for the streaming protocols logs failed streams to klog as well.
//
// # Differences from the kubelet
//
// The kubelet is a client of this package. Runtimes use the streaming server of
// k8s.io/cri-streaming. This package uses only its lower layers, because that
// server does not report to the runtime that the client of a forwarded port has
// disconnected, and does not end its streams when it is stopped.
//
// # Testing
//
// The tests call every method of the services by reflection, with the clients that
// the kubelet uses: the official one and package runtime/cri/streaming.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package serve
