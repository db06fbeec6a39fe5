//go:build unix

package hollow

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"time"
)

// processorTime returns the processor time that this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// anonymousMemory returns the memory of this process that no file backs, in bytes; zero if it
// is not known on this system.
func anonymousMemory() uint64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	var kb uint64
	if _, rest, ok := bytes.Cut(data, []byte("RssAnon:")); ok {
		_, _ = fmt.Sscan(string(rest), &kb)
	}
	return kb * 1024
}
