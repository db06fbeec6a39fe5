// Package page shows a node to people: what runs on it now, what was last done for
// each pod and why, how well it is, and what becomes short. It is HTML and SVG made
// on the server, so that a terminal's browser shows it as well as any other, and
// works without JavaScript.
//
// # What it decides
//
// How a [Node], which is plain data, looks: which pods come first (those that are in
// trouble), what is cut short and where it is found in full, which words and which
// charts. Where the data comes from is for the caller's func.
//
// # Usage
//
//	pages, err := page.New(page.Config{Node: func(ctx context.Context) page.Node { … }})
//	if err != nil {
//		return err
//	}
//	mux.Handle("GET /", pages)
//
// It answers /, /pod/NAMESPACE/NAME, /pod?uid=UID, and what these refer to: page.css,
// page.js and icon.svg. All links are relative: it may lie behind a proxy's path.
// With ?refresh=0 a page stays as it is, with ?refresh=60 it is renewed each minute.
//
// # Concurrency
//
// A [Handler] answers many requests at a time. It asks for the Node once for all of
// those that come within Config.Fresh, and for one at a time.
//
// # Guarantees and limits
//
//   - Names, messages and all else that others have written are escaped, cut to a
//     length, and lose what would turn the text around or speak to a terminal.
//   - A page loads nothing from elsewhere and runs no script but its own; the
//     Content-Security-Policy says so.
//   - A page of 110 pods with long messages has less than a megabyte. What is left
//     out of a list is counted in words.
//   - It asks nobody who he is. Serve it on loopback, or behind something that does.
//
// # Differences from the kubelet
//
// The kubelet has no such page.
//
// # Testing
//
// Pages of made-up nodes are parsed and looked at: their structure, hostile names,
// sizes. The reference agent's tests open its own in a browser.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package page
