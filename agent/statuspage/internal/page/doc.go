// Package page renders the status page of a node from a [Node], which is plain data. It is
// HTML and SVG, rendered by the server, so that it works without JavaScript and in browsers
// for terminals.
//
// # Behavior
//
// The presentation: the order of pods (those with problems first), the bounds of lists and
// texts, the wording and the charts.
//
// # Usage
//
//	pages, err := page.New(page.Config{Node: func(ctx context.Context) page.Node { … }})
//	mux.Handle("GET /", pages)
//
// It serves /, /pod/NAMESPACE/NAME, /pod?uid=UID, page.css, page.js and icon.svg. All links
// are relative, so that it can be mounted below any path. ?refresh=0 disables the refresh
// of a page, ?refresh=60 refreshes it every minute.
//
// # Concurrency
//
// A [Handler] is safe for concurrent use. It calls Config.Node once for all requests within
// Config.Fresh, and not concurrently.
//
// # Guarantees and limits
//
//   - Names, messages and all other texts are escaped, bounded, and stripped of characters
//     that change the direction of text or are commands to a terminal.
//   - A page loads no resource of another origin and runs no script but its own, as its
//     Content-Security-Policy requires.
//   - A page of 110 pods with long messages is below 1 MiB. The number of omitted entries
//     of a list is shown.
//
// # Testing
//
// Pages of synthetic nodes are parsed and compared: structure, hostile names, sizes.
// Integration tests open them in a browser.
package page
