package fakecri

import (
	"bytes"
	"runtime"
)

// inBubble reports whether the caller is in a testing/synctest bubble. Without package
// testing, the stack trace of the goroutine is the only way to find out.
func inBubble() bool {
	var buf [128]byte
	head, _, _ := bytes.Cut(buf[:runtime.Stack(buf[:], false)], []byte("\n"))
	return bytes.Contains(head, []byte("synctest"))
}
