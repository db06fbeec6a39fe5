package cgroups

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"
)

// Stats are the usage of a cgroup and its descendants. Parts that the machine does not
// report are nil.
type Stats struct {
	At     time.Time
	CPU    *CPUStats
	Memory *MemoryStats
	Swap   *SwapStats
	Pids   *PidsStats
	IO     *IOStats
}

// CPUStats is the CPU usage.
type CPUStats struct {
	UsageNanos     uint64 // since the cgroup was created
	UserNanos      uint64 // in user mode
	SystemNanos    uint64 // in the kernel
	Periods        uint64 // with a quota
	Throttled      uint64 // periods in which the quota was exhausted
	ThrottledNanos uint64
	PSI            *PSI
}

// MemoryStats are in bytes.
type MemoryStats struct {
	Usage      uint64
	WorkingSet uint64 // usage without the inactive file cache; not below 0
	RSS        uint64
	Limit      int64 // Unlimited if there is none
	Faults     uint64
	Major      uint64 // faults that read from disk
	OOMKills   uint64 // processes killed by the OOM killer; with v1 without those in descendants
	PSI        *PSI

	Cache, MappedFile        uint64  // page cache of files, and its part that processes have mapped
	ActiveFile, InactiveFile uint64  // the parts of Cache that are reclaimed last and first
	Kernel                   uint64  // kernel memory
	Peak                     *uint64 // maximum usage; nil if the kernel does not report it
	LimitHits                uint64  // times that usage reached the limit
}

// SwapStats are in bytes.
type SwapStats struct {
	Usage uint64
	Limit int64 // Unlimited if there is none
}

// PidsStats is the number of processes and threads.
type PidsStats struct {
	Current uint64
	Limit   int64 // Unlimited if there is none

	// Processes are the PIDs of the processes directly in the cgroup.
	Processes []int
}

// IOStats is the I/O of all block devices.
type IOStats struct {
	ReadBytes, WriteBytes uint64
	Reads, Writes         uint64
	PSI                   *PSI
	Devices               []DeviceIO // in the kernel's order
}

// DeviceIO is the I/O of one block device.
type DeviceIO struct {
	Major, Minor          uint32
	ReadBytes, WriteBytes uint64
	Reads, Writes         uint64
}

// PSI is pressure stall information: the time in which some or all tasks waited.
type PSI struct{ Some, Full PSIData }

// PSIData is one line of a pressure file: percentages of time, and the total.
type PSIData struct {
	Avg10, Avg60, Avg300 float64
	TotalMicros          uint64
}

// ReadStats reads the usage of a cgroup with the cgroup version, at the time at. If files
// have invalid content, it returns the other parts and an error that joins the failures.
// It returns fs.ErrNotExist if no file exists.
func ReadStats(version int, at time.Time, files Files) (Stats, error) {
	r := statsReader{files: files}
	s := Stats{At: at}
	if version == 2 {
		r.v2(&s)
	} else {
		r.v1(&s)
	}
	if r.found == 0 && len(r.errs) == 0 {
		return s, fmt.Errorf("cgroups: no stats: %w", fs.ErrNotExist)
	}
	return s, errors.Join(r.errs...)
}

type statsReader struct {
	files Files
	found int
	errs  []error
}

func (r *statsReader) v2(s *Stats) {
	if cpu, ok := r.table("cpu", "cpu.stat"); ok {
		s.CPU = &CPUStats{
			UsageNanos: micros(cpu["usage_usec"]), Periods: cpu["nr_periods"],
			Throttled: cpu["nr_throttled"], ThrottledNanos: micros(cpu["throttled_usec"]), PSI: r.psi("cpu.pressure"),
			UserNanos: micros(cpu["user_usec"]), SystemNanos: micros(cpu["system_usec"]),
		}
	}
	usage, hasUsage := r.number("memory", "memory.current")
	if table, ok := r.table("memory", "memory.stat"); ok && hasUsage {
		s.Memory = &MemoryStats{
			Usage: uint64(usage), WorkingSet: without(uint64(usage), table["inactive_file"]), RSS: table["anon"], Limit: Unlimited,
			Faults: table["pgfault"], Major: table["pgmajfault"], PSI: r.psi("memory.pressure"),
			Cache: table["file"], MappedFile: table["file_mapped"], ActiveFile: table["active_file"], InactiveFile: table["inactive_file"],
			Kernel: table["kernel"], Peak: r.maybe("memory", "memory.peak"),
		}
		if limit, ok := r.number("memory", "memory.max"); ok {
			s.Memory.Limit = limit
		}
		if events, ok := r.table("memory", "memory.events"); ok {
			s.Memory.OOMKills, s.Memory.LimitHits = events["oom_kill"], events["max"]
		}
	}
	if swap, ok := r.number("memory", "memory.swap.current"); ok {
		s.Swap = &SwapStats{Usage: uint64(swap), Limit: Unlimited}
		if limit, ok := r.number("memory", "memory.swap.max"); ok {
			s.Swap.Limit = limit
		}
	}
	r.pids(s)
	if text, ok := r.text("io", "io.stat"); ok {
		s.IO = r.ioV2(text)
	}
	if psi := r.psi("io.pressure"); psi != nil {
		if s.IO == nil {
			s.IO = new(IOStats)
		}
		s.IO.PSI = psi
	}
}

func (r *statsReader) v1(s *Stats) {
	if usage, ok := r.number("cpuacct", "cpuacct.usage"); ok {
		s.CPU = &CPUStats{UsageNanos: uint64(usage)}
		if cpu, ok := r.table("cpu", "cpu.stat"); ok {
			s.CPU.Periods, s.CPU.Throttled, s.CPU.ThrottledNanos = cpu["nr_periods"], cpu["nr_throttled"], cpu["throttled_time"]
		}
		for file, of := range map[string]*uint64{"cpuacct.usage_user": &s.CPU.UserNanos, "cpuacct.usage_sys": &s.CPU.SystemNanos} {
			if n := r.maybe("cpuacct", file); n != nil {
				*of = *n
			}
		}
	}
	usage, hasUsage := r.number("memory", "memory.usage_in_bytes")
	if table, ok := r.table("memory", "memory.stat"); ok && hasUsage {
		s.Memory = &MemoryStats{
			Usage: uint64(usage), WorkingSet: without(uint64(usage), table["total_inactive_file"]), RSS: table["total_rss"], Limit: Unlimited,
			Faults: table["total_pgfault"], Major: table["total_pgmajfault"],
			Cache: table["total_cache"], MappedFile: table["total_mapped_file"], ActiveFile: table["total_active_file"], InactiveFile: table["total_inactive_file"],
			Peak: r.maybe("memory", "memory.max_usage_in_bytes"),
		}
		for file, of := range map[string]*uint64{"memory.kmem.usage_in_bytes": &s.Memory.Kernel, "memory.failcnt": &s.Memory.LimitHits} {
			if n := r.maybe("memory", file); n != nil {
				*of = *n
			}
		}
		if limit, ok := r.number("memory", "memory.limit_in_bytes"); ok {
			s.Memory.Limit = limit
		}
		if oom, ok := r.table("memory", "memory.oom_control"); ok {
			s.Memory.OOMKills = oom["oom_kill"]
		}
		if both, ok := r.number("memory", "memory.memsw.usage_in_bytes"); ok {
			s.Swap = &SwapStats{Usage: without(uint64(both), uint64(usage)), Limit: Unlimited}
			if limit, ok := r.number("memory", "memory.memsw.limit_in_bytes"); ok && limit >= 0 && s.Memory.Limit >= 0 {
				s.Swap.Limit = max(limit-s.Memory.Limit, 0)
			}
		}
	}
	r.pids(s)
	devices := map[[2]uint32]int{}
	if io := new(IOStats); r.blkio(io, devices, "blkio.throttle.io_service_bytes_recursive", (*DeviceIO).bytes) {
		r.blkio(io, devices, "blkio.throttle.io_serviced_recursive", (*DeviceIO).count)
		s.IO = io.sum()
	}
}

func (r *statsReader) pids(s *Stats) {
	if current, ok := r.number("pids", "pids.current"); ok {
		s.Pids = &PidsStats{Current: uint64(current), Limit: Unlimited}
		if limit, ok := r.number("pids", "pids.max"); ok {
			s.Pids.Limit = limit
		}
		text, _ := r.text("pids", "cgroup.procs")
		for line := range bytes.Lines(text) {
			if pid, err := strconv.Atoi(string(bytes.TrimSpace(line))); err == nil && pid > 0 { // 0 is a process of another PID namespace
				s.Pids.Processes = append(s.Pids.Processes, pid)
			}
		}
	}
}

// ioV2 parses lines such as "8:0 rbytes=1 wbytes=2 rios=3 wios=4".
func (r *statsReader) ioV2(text []byte) *IOStats {
	var s IOStats
	for line := range bytes.Lines(text) {
		var d DeviceIO
		fields := strings.Fields(string(line))
		if len(fields) == 0 || !d.parseNumbers(fields[0]) {
			continue
		}
		for _, field := range fields[1:] {
			key, value, ok := strings.Cut(field, "=")
			n, err := strconv.ParseUint(value, 10, 64)
			if !ok || err != nil {
				continue // such as the model of the device
			}
			switch key {
			case "rbytes":
				d.ReadBytes = n
			case "wbytes":
				d.WriteBytes = n
			case "rios":
				d.Reads = n
			case "wios":
				d.Writes = n
			}
		}
		s.Devices = append(s.Devices, d)
	}
	return s.sum()
}

// parseNumbers parses device numbers such as "8:0".
func (d *DeviceIO) parseNumbers(numbers string) bool {
	major, minor, ok := strings.Cut(numbers, ":")
	a, err := strconv.ParseUint(major, 10, 32)
	b, err2 := strconv.ParseUint(minor, 10, 32)
	d.Major, d.Minor = uint32(a), uint32(b)
	return ok && err == nil && err2 == nil
}

func (d *DeviceIO) bytes() (read, write *uint64) { return &d.ReadBytes, &d.WriteBytes }
func (d *DeviceIO) count() (read, write *uint64) { return &d.Reads, &d.Writes }

// sum adds up the devices.
func (s *IOStats) sum() *IOStats {
	for _, d := range s.Devices {
		s.ReadBytes, s.WriteBytes, s.Reads, s.Writes = s.ReadBytes+d.ReadBytes, s.WriteBytes+d.WriteBytes, s.Reads+d.Reads, s.Writes+d.Writes
	}
	return s
}

// blkio parses lines such as "8:0 Read 4096" into the fields of each device that of
// selects; at contains the indices of the devices in s.
func (r *statsReader) blkio(s *IOStats, at map[[2]uint32]int, file string, of func(*DeviceIO) (read, write *uint64)) bool {
	text, ok := r.text("blkio", file)
	for line := range bytes.Lines(text) {
		var d DeviceIO
		fields := strings.Fields(string(line))
		if len(fields) != 3 || !d.parseNumbers(fields[0]) {
			continue
		}
		n, err := strconv.ParseUint(fields[2], 10, 64)
		if err != nil {
			r.bad(file, fields[2])
			continue
		}
		i, known := at[[2]uint32{d.Major, d.Minor}]
		if !known {
			i = len(s.Devices)
			at[[2]uint32{d.Major, d.Minor}] = i
			s.Devices = append(s.Devices, d)
		}
		read, write := of(&s.Devices[i])
		switch fields[1] {
		case "Read":
			*read = n
		case "Write":
			*write = n
		}
	}
	return ok
}

func (r *statsReader) text(controller, file string) ([]byte, bool) {
	text, err := r.files(controller, file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false
	case err != nil:
		r.errs = append(r.errs, fmt.Errorf("cgroups: %s: %w", file, err))
		return nil, false
	}
	r.found++
	return text, true
}

func (r *statsReader) number(controller, file string) (int64, bool) {
	text, ok := r.text(controller, file)
	if !ok {
		return 0, false
	}
	n, err := limit(string(text))
	if err != nil {
		r.bad(file, string(text))
		return 0, false
	}
	return n, true
}

// maybe reads a number that some kernels do not report.
func (r *statsReader) maybe(controller, file string) *uint64 {
	if n, ok := r.number(controller, file); ok && n >= 0 {
		return new(uint64(n))
	}
	return nil
}

// table parses lines with a key and a number. Other lines are ignored, because kernels
// add some.
func (r *statsReader) table(controller, file string) (map[string]uint64, bool) {
	text, ok := r.text(controller, file)
	if !ok {
		return nil, false
	}
	table := make(map[string]uint64, 48)
	for line := range bytes.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			table[key] = n
		}
	}
	return table, true
}

func (r *statsReader) psi(file string) *PSI {
	text, err := r.files("", file)
	if err != nil {
		return nil // not supported, or disabled with psi=0, which fails the read
	}
	psi, err := ParsePSI(text)
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("cgroups: %s: %w", file, err))
		return nil
	}
	r.found++
	return psi
}

func (r *statsReader) bad(file, text string) {
	r.errs = append(r.errs, fmt.Errorf("cgroups: %s: %.64q is not a number", file, text))
}

// ParsePSI parses a pressure file of a cgroup or of /proc/pressure, with lines such as
// "some avg10=0.00 avg60=0.00 avg300=0.00 total=0".
func ParsePSI(text []byte) (*PSI, error) {
	var psi PSI
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) == 0 {
			continue
		}
		var data *PSIData
		switch fields[0] {
		case "some":
			data = &psi.Some
		case "full":
			data = &psi.Full
		default:
			return nil, fmt.Errorf("%.64q is not a line of a pressure file", line)
		}
		for _, field := range fields[1:] {
			key, value, _ := strings.Cut(field, "=")
			n, err := strconv.ParseFloat(value, 64)
			if err != nil || n < 0 || math.IsInf(n, 0) || math.IsNaN(n) {
				return nil, fmt.Errorf("%.64q is not a pressure value", field)
			}
			switch key {
			case "avg10":
				data.Avg10 = n
			case "avg60":
				data.Avg60 = n
			case "avg300":
				data.Avg300 = n
			case "total":
				if data.TotalMicros, err = strconv.ParseUint(value, 10, 64); err != nil {
					return nil, fmt.Errorf("%.64q is not a pressure value", field)
				}
			}
		}
	}
	return &psi, nil
}

func micros(n uint64) uint64 {
	if n > math.MaxUint64/1000 {
		return math.MaxUint64
	}
	return n * 1000
}

// without returns a-b, or 0 if that is negative.
func without(a, b uint64) uint64 {
	if b > a {
		return 0
	}
	return a - b
}
