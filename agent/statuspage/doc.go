// Package statuspage serves the state of a node agent over HTTP: an HTML page for
// users, and /healthz, /pods and /explain for programs.
//
// # Behavior
//
// The package determines how the state of an agent is presented: the order of the pods (those with failures
// first), the redaction of values that may be secret, the length of lists and texts.
// The page is HTML and SVG, rendered by the server; it works without JavaScript and in
// a browser for terminals.
//
// # Usage
//
// [New] returns an http.Handler for an agent, [Listen] opens a TCP address or a Unix socket, and
// [Serve] serves the Handler until its context is done; see the package example. The methods of
// a [History] are passed to the hooks of other components.
//
// The Handler answers:
//
//	/                    the node: pods, pressure, probes, volumes, images, events
//	/pod/NAMESPACE/NAME  a pod; /pod?uid=UID, too
//	/healthz             200 if every check succeeds, else 503, with a line for each
//	/pods                a PodList with statuses, as at the kubelet's endpoint, redacted
//	/explain             why each pod, or that with ?uid=, is in its state; ?output=json
//
// and the paths of Config.Handlers. All links are relative, so that it can be mounted
// at any path with http.StripPrefix.
//
// # Concurrency
//
// A [Handler] and a [History] are safe for concurrent use. The Handler inspects the node
// at most once per second, however many clients there are.
//
// # Guarantees and limits
//
//   - Requests are not authenticated. [Listen] requires an explicit address, and a unix
//     socket that it creates is accessible only to the user of the process.
//   - Literal values of environment variables, HTTP headers, annotations and options of
//     volume drivers are never shown; values of at least 8 bytes are also removed from
//     messages, quoted any number of times. Contents of Secrets are not read.
//   - The page of a pod has the last 20 lines of the log of each container, without these
//     values. A log may contain other secrets: Config.NoLogs leaves the lines out.
//   - Text from pods, runtimes and users is escaped, bounded in length, and stripped of
//     control characters. A page loads no resource of another origin.
//   - A History holds at most 200 events, 180 measurements per signal, and 500 plans. A
//     page of 110 pods is below 1 MiB.
//   - [Serve] holds at most 64 connections, with at most 16 KiB of unread headers each.
//
// # Differences from the kubelet
//
// The kubelet serves /healthz and /pods; it has no page, does not explain pods, and does
// not redact.
//
// # Testing
//
// The pages are parsed and compared; their text is fuzzed; integration tests open them
// in Chromium and w3m.
//
// # Stability
//
// Experimental: expect it to change.
package statuspage
