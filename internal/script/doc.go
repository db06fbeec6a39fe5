// Package script plays scenario scripts: text files that say what happens, line
// by line, and what it is expected to lead to.
//
// # What it decides
//
// The format, and what a difference looks like. What the commands do is up to
// the test that plays them.
//
//	# pw-65: the successor of a static pod waits for its predecessor.
//	create static-a/web
//	> 0s static-a: sync
//	create static-b/web
//	advance 20
//
// A line is one of
//
//   - a comment: its first character other than blanks is "#". Comments name the
//     rules that a script shows, for people and for the test that looks for them;
//   - empty;
//   - an expectation: it begins with ">" in its first column. All those below a
//     command, comments and empty lines left out, are what that command leads to;
//   - a command: words between blanks. What is in double quotes, with the
//     backslashes of a Go string, is taken as it is, so that a word can hold
//     blanks: end=failed(Evicted,"low on memory").
//
// Lines end in LF or CRLF; what is written ends in LF.
//
// # Usage
//
//	var update = flag.Bool("update", false, "rewrite the expectations in testdata/*.txt")
//
//	func TestScenarios(t *testing.T) {
//		script.Run(t, "testdata/*.txt", *update, func(t *testing.T, s *script.Script) *script.Script {
//			w := newWorld(t)
//			played, err := s.Play(w.command)
//			...
//			return played
//		})
//	}
//
// A story is written as commands only and filled in by -update; the diff is then
// read as carefully as code. A script in virtual time wraps its Play in
// synctest.Test.
//
// # Concurrency
//
// A Script does not change once it is parsed. Commands are played one after the
// other, on the goroutine of Play.
//
// # Guarantees and limits
//
// Whatever [Parse] takes comes back out of String as it was, but for the ends of
// lines. Errors name the file and the line. There are no variables, loops or
// includes: who needs those writes Go.
//
// # Differences from the kubelet
//
// It has no such scripts: there each story is a table or a function of Go.
//
// # Testing
//
// The parser is fuzzed. The package is test support; no library package imports
// it.
package script
