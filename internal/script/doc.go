// Package script runs scenario scripts for tests: text files with commands, each followed by
// its expected results.
//
// # What it decides
//
// The format, and how differences are reported. The test that runs a script implements the
// commands.
//
//	# pw-65: the successor of a static pod waits for its predecessor.
//	create static-a/web
//	> 0s static-a: sync
//	create static-b/web
//	advance 20
//
// A line is one of
//
//   - a comment: its first character other than blanks is "#". Comments name the rules
//     that a script proves; docs/rules/index.md is generated from them;
//   - an empty line;
//   - an expectation: ">" in the first column. All expectations below a command, ignoring
//     comments and empty lines, are the results of that command;
//   - a command: words separated by blanks. Text in double quotes, with the backslashes
//     of a Go string, is used literally, so that a word can contain blanks:
//     end=failed(Evicted,"low on memory").
//
// Lines end in LF or CRLF; written files have LF.
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
// A scenario is written as commands, and -update adds the expectations; the diff is then
// reviewed like code. A script in virtual time calls Play in synctest.Test.
//
// # Concurrency
//
// A parsed Script does not change. Play runs the commands sequentially on its goroutine.
//
// # Guarantees and limits
//
// String returns the text that [Parse] accepted, except for the ends of lines. Errors contain
// the file and the line. There are no variables, loops or includes; such tests are written in
// Go.
//
// # Differences from the kubelet
//
// The kubelet has no such scripts; its scenarios are tables and functions of Go.
//
// # Testing
//
// The parser is fuzzed. The package is test support; no library package imports it.
package script
