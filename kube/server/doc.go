// Package server serves the kubelet's HTTP API: handlers, and a listener that bounds the
// resources of clients that are not authenticated.
//
// # Behavior
//
// [Attributes] determines the authorization attributes of a request, which [Server] passes
// to an authenticator and an authorizer of package auth. The responses are pods, stats,
// metrics, health, configuration, flags, logs of containers and of the node, streams,
// checkpoints and profiles; each is read from a small interface or function of [Config], and is absent
// without it. [Listener] bounds the resources of connections without an authorized request.
//
// # Usage
//
//	s, err := server.New(server.Config{
//		NodeName: "n1", Pods: pods, Runtime: rt,
//		Authenticator: auth.Chain{auth.Certificates{Roots: ca.Roots}, tokens}, Authorizer: access,
//		Node:      server.Node{Checks: []server.Check{{Name: "syncloop", Check: loop.Healthy}}},
//		Debugging: server.Debugging{Handlers: true},
//	})
//	pair, err := server.NewKeyPair("tls.crt", "tls.key", logger) // or certs.Serving
//	port, err := net.Listen("tcp", ":10250")
//	l, err := server.NewListener(server.ListenerConfig{
//		Listener: port, Handler: s, TLS: server.TLSConfig{Certificate: pair.Certificate, ClientCAs: ca.Roots},
//	})
//	…
//	err = l.Run(ctx)
//
// [Server.ReadOnly] and [Server.Healthz] return the handlers of ports 10255 and 10248. Each
// handler can also be mounted elsewhere: a process with several virtual nodes has a Server
// for each, on one port that is selected by host name, or on several.
//
// # Concurrency
//
// Handlers are safe for concurrent use, and functions of Config are called from many
// goroutines. A Server runs no goroutines. [Listener.Run] blocks; it returns after all
// handlers have returned, whose requests are canceled with its context.
//
// # Guarantees and limits
//
//   - Requests are authenticated and authorized before they are served. The authorization
//     attributes depend on the method and path only; a path that is not canonical is
//     refused, so that the authorized path is the served path.
//   - Running something in a pod is authorized as create, with any method: permission for
//     get nodes/proxy alone results in 403 (rule sv-19).
//   - Connections without an authorized request are bounded, even while the API server
//     reviews one of their requests: 512 connections, 16 MiB of incomplete requests in
//     total, and 10 s for a handshake and for the header of each request. 10,000 half-open
//     connections use a few MiB, and authorized clients are served meanwhile.
//   - /logs serves only regular files and directories below its root, if the root is that
//     of an os.Root.
//   - Certificates, keys and CAs are read again when their files change.
//   - Streams end with their client and with the context of the request. The streaming
//     server of a runtime must be on this machine or at one of Containers.StreamHosts, so
//     that a compromised runtime cannot direct requests of this node elsewhere; it does not
//     receive the credentials of the client.
//
// # Differences from the kubelet
//
//   - exec, attach, portForward and run are authorized as create also for GET.
//   - While too many token or access reviews are pending the response is 429, immediately.
//   - HEAD is authorized as get; a method without a verb results in 405 without a review.
//   - A connection is closed after a 401.
//   - The timeout of request headers is 10 s, not 4 h.
//   - portForward is long-running in metrics, as exec is (rule sv-12).
//   - exec and attach of a container that is not running result in 404, not 500.
//   - A UID in the path of exec, attach and run that is not that of the named pod results
//     in 404, as with portForward. The kubelet ignores it.
//   - Invalid requests for streams are rejected before the runtime is called.
//   - /checkpoint of a container that is not running results in 404.
//   - A disabled query of node logs results in 405. Its pattern may take
//     100,000 steps for each message of the journal.
//   - /logs does not follow links out of its directory.
//   - /configz, /statusz and /flagz accept GET and HEAD only. The separators in the text of
//     the last two are not random.
//   - Self-signed certificates are replaced 30 days before they expire (package certs).
//
// # Testing
//
// Authorization attributes are tested by a table (rules sv-14 to sv-19); limits, floods and
// slow clients are tested in virtual time, and with ten thousand TCP connections.
//
// # Stability
//
// Growing: the API will be extended; a minor version may change it, and CHANGELOG.md
// describes how to migrate.
package server
