//go:build unix

package footprint

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A memory is what a process has in memory, in bytes.
type memory struct{ rss, pss, anonymous, file int64 }

// memoryOf returns the memory of a process.
func memoryOf(pid int) (memory, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return memory{}, err
	}
	return parseMemory(data)
}

// parseMemory parses /proc/PID/smaps_rollup. Anonymous memory is that of the Go heap, stacks and
// the runtime's own structures; the rest of RSS is backed by files, mostly the program itself.
func parseMemory(rollup []byte) (m memory, err error) {
	values := map[string]int64{}
	for lines := bufio.NewScanner(bytes.NewReader(rollup)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 || fields[2] != "kB" {
			continue
		}
		n, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return memory{}, fmt.Errorf("smaps_rollup: %w", err)
		}
		values[strings.TrimSuffix(fields[0], ":")] = n << 10
	}
	for _, name := range []string{"Rss", "Pss", "Anonymous"} {
		if _, ok := values[name]; !ok {
			return memory{}, fmt.Errorf("smaps_rollup: no line %q", name)
		}
	}
	return memory{rss: values["Rss"], pss: values["Pss"], anonymous: values["Anonymous"], file: values["Rss"] - values["Anonymous"]}, nil
}

// findProcess returns the process whose environment contains a variable with a value; 0 if there is
// none.
func findProcess(variable string) int {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range environs {
		data, _ := os.ReadFile(file) // empty if the process has exited
		for entry := range bytes.SplitSeq(data, []byte{0}) {
			if string(entry) == variable {
				pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
				return pid
			}
		}
	}
	return 0
}
