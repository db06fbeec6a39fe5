// Package server answers what is asked of a node over HTTP: the kubelet's API, as
// handlers, and a listener that keeps it up whoever knocks.
//
// # What it decides
//
// Who may ask what: [Attributes] says what a request is authorised as, and [Server]
// asks an authenticator and an authorizer of package auth. What the answer is: pods,
// stats, metrics, health, configuration, logs of containers and of the node, streams,
// checkpoints, profiles; each from a small interface or func of [Config], and not there
// without it. How much those can take whom nobody has let in: [Listener].
//
// # Usage
//
//	s, err := server.New(server.Config{
//		NodeName: "n1", Pods: pods, Runtime: rt,
//		Authenticator: auth.Chain{auth.Certificates{Roots: ca.Roots}, tokens}, Authorizer: access,
//		Checks: []server.Check{{Name: "syncloop", Ask: loop.Healthy}},
//		Debugging: server.Debugging{Handlers: true},
//	})
//	pair, err := server.NewKeyPair("tls.crt", "tls.key", logger) // or certs.Serving
//	port, err := net.Listen("tcp", ":10250")
//	l, err := server.NewListener(server.ListenerConfig{Listener: port, Handler: s, Certificate: pair.Certificate, ClientCAs: ca.Roots})
//	…
//	err = l.Run(ctx)
//
// s.ReadOnly() and s.Healthz() are the handlers of 10255 and 10248. Any of the three can
// be mounted elsewhere: a virtual node has a Server each, in one process, on one port
// by the name that is asked for, or on many.
//
// # Concurrency
//
// Handlers may be called from any goroutine, and so are the funcs of Config. A Server
// runs nothing. A Listener's Run blocks, and returns when its handlers have, whose
// requests end with its context.
//
// # Guarantees and limits
//
//   - Nothing is answered before somebody has been authenticated, and nothing but a
//     refusal before he has been authorised. What a request is authorised as follows
//     from its method and path alone; a path that is not in its shortest form is
//     refused, so that what is authorised is what is served.
//   - What runs something in a pod is authorised as create, whichever method opens the
//     stream: `get nodes/proxy` alone gets 403 (F-71, sv-19).
//   - Connections without an authorized request so far make room for each other, also
//     while the API server is being asked about one: there are 512 at most, with 16 MiB of unfinished requests between them, and a handshake
//     and the headers of a request have ten seconds. 10,000 half-open connections cost
//     a few MiB, and who may ask is answered meanwhile.
//   - /logs shows regular files and directories below its root and nothing else, if
//     the root is that of an os.Root.
//   - Certificates, keys and CAs are read again when their files change.
//   - Streams end with their client and with the request's context. Where a runtime has
//     its streams is believed only on this machine, or at Config.StreamHosts: one that
//     lies can't have this node ask others; and it is not shown the client's
//     credentials.
//
// # Differences from the kubelet
//
//   - exec, attach, portForward and run are create also for GET.
//   - While too many token or access reviews are pending the answer is 429, at once.
//   - HEAD is authorised as get; a method without a verb is 405 and asks nobody.
//   - A connection whose user is refused with 401 is closed.
//   - Unfinished headers have ten seconds, not four hours.
//   - portForward counts as long-running in metrics, as exec does (sv-12).
//   - exec and attach of a container that does not run are a 404, not a 500.
//   - A UID in the path of exec, attach and run that is not the named pod's is a 404, as
//     it is for portForward. The kubelet ignores it.
//   - What is wrong with a request for streams is said before the runtime is asked.
//   - /checkpoint of a container that does not run is a 404.
//   - A query of the node's logs that is switched off says so. Its pattern may
//     take 100,000 steps for each message of the journal.
//   - /logs follows no link out of its directory.
//   - Self-signed certificates that end within 30 days are made anew (package certs).
//
// # Testing
//
// What is authorised as what is a table (sv-14 … sv-19); limits, floods and slow
// clients are tried in virtual time, and with ten thousand connections over TCP.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package server
