package operators

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sampleMemory observes the children of a process with the given program names until stop is
// called, which returns the maximum of the sum of their anonymous memory in bytes. It is 0
// where there is no /proc.
func sampleMemory(parent int, names ...string) (stop func() int64) {
	quit, done := make(chan struct{}), make(chan int64)
	go func() {
		maximum := int64(0)
		ticker := time.NewTicker(500 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				done <- maximum
				return
			case <-ticker.C:
				maximum = max(maximum, anonymous(parent, names))
			}
		}
	}()
	return func() int64 {
		close(quit)
		return <-done
	}
}

// anonymous returns the sum of the anonymous memory of the children of a process.
func anonymous(parent int, names []string) int64 {
	sum := int64(0)
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, file := range files {
		children, _ := os.ReadFile(file)
		for _, pid := range strings.Fields(string(children)) {
			command, _ := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
			program, _, _ := strings.Cut(string(command), "\x00")
			if slices.Contains(names, filepath.Base(program)) {
				sum += anonymousOf(pid)
			}
		}
	}
	return sum
}

// anonymousOf returns the anonymous memory of a process, 0 if it has exited.
func anonymousOf(pid string) int64 {
	status, _ := os.ReadFile(filepath.Join("/proc", pid, "status"))
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kB, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kB * 1024
		}
	}
	return 0
}
