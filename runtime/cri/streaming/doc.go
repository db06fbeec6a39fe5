// Package streaming is a client of the streaming servers of CRI runtimes, for exec,
// attach and port-forward.
//
// A CRI runtime returns from Exec the URL of a streaming server. The client uses
// Kubernetes' remotecommand protocol (v4.channel.k8s.io) and its port-forward
// protocol over SPDY/3.1, which all CRI runtimes support.
//
// # Usage
//
// Pass a [Client] to cri.New as Config.Streams; cri.Runtime then implements exec,
// attach and port-forward. It is a separate package so that the engine can be
// imported without the protocol, for plain processes or for agents that pass on
// the URLs.
//
// # Concurrency
//
// A Client is safe for concurrent use. A call has a goroutine that reads the
// connection, and one for each stream.
//
// # Guarantees and limits
//
//   - A call returns when its context is done, whatever the server does; the time
//     for the server to accept the streams is limited by Client.Timeout.
//   - After a call has returned, nothing is written to the streams, and no goroutine
//     is left except one that reads an input whose Read blocks; it returns when the
//     Read does.
//   - Output is complete if there is no error. Output that the caller's Writer
//     rejects is discarded, and the call continues.
//   - The memory a server can use is limited: a data frame has at most 16 MiB,
//     another frame 1 MiB, an error response 4 KiB.
//   - The exit code is the one the server reports. If the connection is lost before,
//     the error is io.ErrUnexpectedEOF.
//   - It connects without a proxy, and only to this machine or to Client.Hosts, so
//     that a compromised runtime cannot make the node connect elsewhere. The URL is a
//     secret and is not part of errors.
//
// # Differences from the kubelet
//
// The kubelet connects only as a proxy; the client of this protocol is in
// client-go. Unlike that one, this package does not offer protocols before v4, which
// no runtime needs, and returns an error if the server does not report an exit.
//
// # Testing
//
// The tests run against the server library of runtimes, and against servers that
// violate the protocol. The integration suite runs against real containerds.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package streaming
