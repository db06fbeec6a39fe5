// Package script runs scenario scripts: text files of commands and their expected results,
// one per line.
//
// # Behavior
//
// It decides the format of scripts and of differences. The test that runs a script
// implements the commands.
//
//	# pw-65: the successor of a static pod waits for its predecessor.
//	create static-a/web
//	> 0s static-a: sync
//	create static-b/web
//	advance 20
//
// A line is one of
//
//   - a comment: its first character other than blanks is "#". Comments cite the rules
//     that a script tests, for readers and for the rule index;
//   - empty;
//   - an expectation: it begins with ">" in the first column. The expectations below a
//     command, also after comments and empty lines, are the expected results of it;
//   - a command: words separated by blanks. A part in double quotes, with the escapes of
//     a Go string, may contain blanks: end=failed(Evicted,"low on memory").
//
// Lines end with LF or CRLF; scripts are written with LF.
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
// A new scenario is written as commands only; -update adds the expectations, which must be
// reviewed like code. A script in virtual time calls Play in synctest.Test.
//
// # Concurrency
//
// A Script is immutable. Commands are run one after the other, on the goroutine of Play.
//
// # Guarantees and limits
//
// String returns the text that [Parse] has parsed, except for line ends. Errors contain the
// file and the line. There are no variables, loops or includes; such tests are written in
// Go.
//
// # Differences from the kubelet
//
// The kubelet has no such scripts: its scenarios are tables or functions in Go.
//
// # Testing
//
// The parser is fuzzed. The package is test support; no library package imports it.
package script
