//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"time"
)

// processorTime is what this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// residentMemory is what this process has of the machine's, in bytes; 0: it is not
// known here.
func residentMemory() uint64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	var kb uint64
	if _, rest, ok := bytes.Cut(data, []byte("VmRSS:")); ok {
		_, _ = fmt.Sscan(string(rest), &kb)
	}
	return kb * 1024
}
