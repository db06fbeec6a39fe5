package operators

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sampleMemory observes the descendants of a process with the given program names until stop
// is called, which returns the maximum of the sum of their anonymous memory in bytes. It is 0
// where there is no /proc.
func sampleMemory(root int, names ...string) (stop func() int64) {
	quit, done := make(chan struct{}), make(chan int64)
	go func() {
		maximum := int64(0)
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				done <- maximum
				return
			case <-ticker.C:
				maximum = max(maximum, anonymous(root, names))
			}
		}
	}()
	return func() int64 {
		close(quit)
		return <-done
	}
}

// anonymous returns the sum of the anonymous memory of the descendants of a process.
func anonymous(root int, names []string) int64 {
	parents, sizes := map[int]int{}, map[int]int64{}
	files, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has exited
		}
		fields := map[string]string{}
		for line := range strings.Lines(string(data)) {
			name, value, _ := strings.Cut(line, ":")
			fields[name] = strings.TrimSpace(value)
		}
		pid, _ := strconv.Atoi(fields["Pid"])
		parents[pid], _ = strconv.Atoi(fields["PPid"])
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		program, _, _ := strings.Cut(string(command), "\x00")
		if slices.Contains(names, filepath.Base(program)) {
			kB, _ := strconv.ParseInt(strings.TrimSuffix(fields["RssAnon"], " kB"), 10, 64)
			sizes[pid] = kB * 1024
		}
	}
	sum := int64(0)
	for pid, size := range sizes {
		for at := pid; at > 1; at = parents[at] {
			if at == root {
				sum += size
				break
			}
		}
	}
	return sum
}
