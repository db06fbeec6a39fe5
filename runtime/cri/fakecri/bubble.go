package fakecri

import (
	"bytes"
	"runtime"
)

// inBubble reports whether the caller is in a testing/synctest bubble, as far as
// that can be told without package testing: by what the Go runtime writes over
// the stack of a goroutine.
func inBubble() bool {
	var buf [128]byte
	head, _, _ := bytes.Cut(buf[:runtime.Stack(buf[:], false)], []byte("\n"))
	return bytes.Contains(head, []byte("synctest"))
}
