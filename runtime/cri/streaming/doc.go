// Package streaming connects to the streaming servers of CRI runtimes: exec,
// attach and port-forward with the streams in hand.
//
// # What it decides
//
// How streams are carried over a connection. A CRI runtime answers an Exec call
// with the URL of a server of its own; what is spoken there is Kubernetes'
// remotecommand protocol (v4.channel.k8s.io) and its port-forward protocol over
// SPDY/3.1, which all CRI runtimes have, and no other.
//
// # Usage
//
// Hand a [Client] to cri.New as Config.Streams; cri.Runtime then is an exec,
// attach and port-forward in hand. It is a package of its own so that the engine
// can be had without the protocol: over plain processes, which need no server, or
// by who passes the URLs on.
//
// # Concurrency
//
// A Client may be used from many goroutines. A call has a goroutine that reads
// the connection, and one for each stream.
//
// # Guarantees and limits
//
//   - A call ends when its context does, whatever the server does; what the
//     server may take to accept the streams is limited by Client.Timeout.
//   - When a call has returned, nothing is written to the streams any more and
//     nothing of it is left, save the goroutine that reads an input whose Read
//     blocks: that ends with the input.
//   - Output is complete if there is no error. Output that the caller's Writer
//     refuses is thrown away, and the rest goes on.
//   - A server cannot make it use memory without bound: a frame of data is 16 MiB
//     at most, one of another kind 1 MiB, a refusal 4 KiB.
//   - How a program ended is the server's word; one that breaks off is an error
//     (io.ErrUnexpectedEOF), never an exit code of 0.
//   - It connects without a proxy, and only to this machine or to Client.Hosts: a
//     runtime that is compromised cannot make the node connect elsewhere. The URL is
//     a secret and is in no error.
//
// # Differences from the kubelet
//
// The kubelet connects only to pass bytes on (its server is a proxy); the client
// of this protocol is in client-go. Unlike that one this offers no older protocol
// than v4, which no runtime needs, and takes a missing outcome for an error.
//
// # Testing
//
// The tests run against the library that runtimes serve with, and against servers
// that lie: garbage, silence, streams half open. The integration suite runs it
// against real containerds.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package streaming
