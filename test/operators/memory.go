package operators

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/test/internal/labenv"
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
				id, _ := strconv.Atoi(pid)
				sum += labenv.AnonymousMemory(id)
			}
		}
	}
	return sum
}
