package labenv

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ClockTick is the unit of CPU times in /proc, USER_HZ, which is 100 on all architectures.
const ClockTick = 10 * time.Millisecond

// CPUTime returns the CPU time that a process has used.
func CPUTime(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseCPUTime(string(data))
}

// parseCPUTime returns user and system time in a line of /proc/PID/stat.
func parseCPUTime(stat string) (time.Duration, error) {
	// The name, in parentheses, may contain anything.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("%q is not a line of /proc/PID/stat", stat)
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/PID/stat: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * ClockTick, nil
}

// Load returns the load average of the last minute; 0 if it is unknown.
func Load() float64 {
	data, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(data), " ")
	n, _ := strconv.ParseFloat(first, 64)
	return n
}

// AnonymousMemory returns the memory of a process that no file backs, in bytes; 0 if it has exited or the system
// has no /proc.
func AnonymousMemory(pid int) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "\nRssAnon:")
	line, _, _ := strings.Cut(rest, " kB")
	kB, _ := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	return kB << 10
}
