package cli

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// NewPrinter returns a function that prints a line with the time since NewPrinter was called.
// It is safe for concurrent use.
func NewPrinter(out io.Writer) func(format string, args ...any) {
	var mu sync.Mutex
	began := time.Now()
	return func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, "%7s  %s\n", time.Since(began).Round(100*time.Millisecond), fmt.Sprintf(format, args...))
	}
}
