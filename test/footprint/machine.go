//go:build unix

package footprint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// A machine is what was used: CPU time of this process, of containerd and of all processes, and the
// flushes of disks.
type machine struct {
	self, daemon, busy, idle time.Duration
	flushes                  int64
	flushing                 time.Duration
}

func (m machine) minus(o machine) machine {
	return machine{
		self: m.self - o.self, daemon: m.daemon - o.daemon, busy: m.busy - o.busy, idle: m.idle - o.idle,
		flushes: m.flushes - o.flushes, flushing: m.flushing - o.flushing,
	}
}

// machine reads the counters.
func (w *world) machine() (m machine, err error) {
	if m.self, err = labenv.CPUTime(os.Getpid()); err != nil {
		return m, err
	}
	if m.daemon, err = labenv.CPUTime(w.daemon.PID()); err != nil {
		return m, err
	}
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return m, err
	}
	if m.busy, m.idle, err = parseStat(string(stat)); err != nil {
		return m, err
	}
	disks, err := os.ReadFile("/proc/diskstats")
	if err != nil {
		return m, err
	}
	m.flushes, m.flushing = parseFlushes(string(disks))
	return m, nil
}

// parseStat returns the time that CPUs were busy, and that they were idle or waited for a disk, in
// the first line of /proc/stat.
func parseStat(stat string) (busy, idle time.Duration, err error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, 0, fmt.Errorf("%q is not the first line of /proc/stat", line)
	}
	for i, field := range fields[1:9] { // user nice system idle iowait irq softirq steal
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("/proc/stat: %w", err)
		}
		if i == 3 || i == 4 {
			idle += time.Duration(n) * labenv.ClockTick
		} else {
			busy += time.Duration(n) * labenv.ClockTick
		}
	}
	return busy, idle, nil
}

// parseFlushes returns the flushes in /proc/diskstats; zero for a kernel that does not count them.
// Partitions have none of their own.
func parseFlushes(diskstats string) (n int64, took time.Duration) {
	for line := range strings.Lines(diskstats) {
		fields := strings.Fields(line)
		if len(fields) < 20 {
			continue
		}
		count, err := strconv.ParseInt(fields[18], 10, 64)
		millis, errTime := strconv.ParseInt(fields[19], 10, 64)
		if err == nil && errTime == nil {
			n, took = n+count, took+time.Duration(millis)*time.Millisecond
		}
	}
	return n, took
}
