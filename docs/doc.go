// Package docs embeds the documents of this directory for the tests that generate or check
// them. A test that reads a document from here runs again when the document changes, also if
// it is in another module of the repository: the go command does not notice changes of files
// that a test opens outside of its module. It is not an API.
package docs

import "embed"

// Files has the documents, by their names in this directory.
//
//go:embed *.md
var Files embed.FS
