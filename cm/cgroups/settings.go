package cgroups

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Facts are the cgroup features of a machine.
type Facts struct {
	// Version is 1 or 2.
	Version int

	// Controllers are the available ones: with v2 those of the root or of the delegated
	// subtree, with v1 those that are mounted; "cpu", "cpuacct", "cpuset", "memory",
	// "pids", "hugetlb", "systemd" and others.
	Controllers []string

	// Driver creates the cgroups. Systemd stores quotas in percent of a CPU and rounds
	// them up. Empty means cgroupfs.
	Driver Driver

	// PageSize is the page size of the kernel in bytes, to which memory limits are
	// rounded. Zero means 4096.
	PageSize int64
}

// Needed returns the controllers that the cgroups of pods must have if the machine has
// them.
func (f Facts) Needed() []string {
	if f.Version == 2 {
		return []string{"cpu", "cpuset", "memory", "hugetlb", "pids"}
	}
	return []string{"cpu", "cpuacct", "cpuset", "memory", "systemd", "pids"}
}

// Missing returns the needed controllers that the machine does not have, in the order of
// Needed. Their limits are not enforced.
func (f Facts) Missing() []string {
	return slices.DeleteFunc(f.Needed(), f.Has)
}

// Has reports whether the machine has the controller.
func (f Facts) Has(controller string) bool { return slices.Contains(f.Controllers, controller) }

// A Setting is a value to write to a file of a cgroup.
type Setting struct {
	Controller string // selects the hierarchy of cgroup v1
	File       string
	Value      string
}

// Settings returns the values to write for r, in order. Values of missing controllers and
// of the other cgroup version are omitted.
func (f Facts) Settings(r Resources) []Setting {
	var out []Setting
	add := func(controller, file string, value *int64, unlimited string) {
		if value == nil || !f.Has(controller) {
			return
		}
		text := strconv.FormatInt(*value, 10)
		if *value == Unlimited {
			text = unlimited
		}
		out = append(out, Setting{controller, file, text})
	}
	if f.Version == 2 {
		weight := r.CPUWeight
		if weight == nil && r.CPUShares != nil {
			weight = new(Weight(*r.CPUShares))
		}
		add("cpu", "cpu.weight", weight, "")
		if (r.CPUQuota != nil || r.CPUPeriod != nil) && f.Has("cpu") {
			quota := "max"
			if r.CPUQuota != nil && *r.CPUQuota > 0 {
				quota = strconv.FormatInt(f.quota(*r.CPUQuota, r.period()), 10)
			}
			out = append(out, Setting{"cpu", "cpu.max", quota + " " + strconv.FormatInt(r.period(), 10)})
		}
		if r.CPUs != "" && f.Has("cpuset") {
			out = append(out, Setting{"cpuset", "cpuset.cpus", r.CPUs})
		}
		add("memory", "memory.max", r.Memory, "max")
		add("memory", "memory.min", r.MemoryMin, "max")
		add("memory", "memory.low", r.MemoryLow, "max")
		add("memory", "memory.high", r.MemoryHigh, "max")
		add("pids", "pids.max", r.Pids, "max")
	} else {
		add("cpu", "cpu.shares", r.CPUShares, "")
		if r.CPUQuota != nil || r.CPUPeriod != nil {
			add("cpu", "cpu.cfs_period_us", new(r.period()), "")
		}
		if r.CPUQuota != nil {
			add("cpu", "cpu.cfs_quota_us", new(f.quota(*r.CPUQuota, r.period())), "-1")
		}
		add("memory", "memory.limit_in_bytes", r.Memory, "-1")
		add("pids", "pids.max", r.Pids, "max")
	}
	for _, size := range slices.Sorted(maps.Keys(r.HugePages)) {
		if f.Version == 2 {
			add("hugetlb", "hugetlb."+PageSizeName(size)+".max", new(r.HugePages[size]), "max")
		} else {
			add("hugetlb", "hugetlb."+PageSizeName(size)+".limit_in_bytes", new(r.HugePages[size]), "-1")
		}
	}
	return out
}

// quota returns the quota that the driver sets for a quota.
func (f Facts) quota(quota, period int64) int64 {
	const percent = 10_000 // microseconds of a second
	if f.Driver != Systemd || quota <= 0 || quota > math.MaxInt64/1_000_000 {
		return quota
	}
	perSecond := quota * 1_000_000 / period
	return (perSecond + percent - 1) / percent * percent * period / 1_000_000
}

func (r Resources) period() int64 {
	if r.CPUPeriod == nil || *r.CPUPeriod <= 0 {
		return DefaultPeriod
	}
	return *r.CPUPeriod
}

// AsRead returns r in the form in which it is read back after it was applied: shares as
// weight, memory in whole pages, without values that are not set.
func (f Facts) AsRead(r Resources) Resources {
	var out Resources
	files := map[string]string{}
	for _, s := range f.Settings(r) {
		files[s.File] = s.Value
	}
	out, err := f.Read(slices.Collect(maps.Keys(r.HugePages)), func(_, file string) ([]byte, error) {
		value, ok := files[file]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return []byte(value), nil
	})
	if err != nil {
		return r // not of ours: Settings wrote it
	}
	out.CPUs = files["cpuset.cpus"]
	page := f.PageSize
	if page <= 0 {
		page = 4096
	}
	for _, field := range []*int64{out.Memory, out.MemoryMin, out.MemoryLow, out.MemoryHigh} {
		if field != nil && *field > 0 {
			*field = *field / page * page
		}
	}
	for size, limit := range out.HugePages {
		if limit > 0 && size > 0 {
			out.HugePages[size] = limit / size * size
		}
	}
	return out
}

// Files returns the content of a file of one cgroup; an error that is fs.ErrNotExist if
// there is no such file.
type Files func(controller, file string) ([]byte, error)

// noLimit is a lower bound of the value with which cgroup v1 reports an absent limit: the
// maximum number of pages, in bytes, which depends on the page size.
const noLimit = math.MaxInt64 - 1<<30

// Read reads the resources of a cgroup, with the given huge page sizes in bytes. Values
// whose file does not exist are nil.
func (f Facts) Read(hugePages []int64, files Files) (Resources, error) {
	var r Resources
	var errs []error
	number := func(controller, file string) *int64 {
		text, err := files(controller, file)
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
			return nil
		}
		var n int64
		if err == nil {
			n, err = limit(string(text))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("cgroups: %s: %w", file, err))
			return nil
		}
		return &n
	}
	if f.Version == 2 {
		r.CPUWeight = number("cpu", "cpu.weight")
		if text, err := files("cpu", "cpu.max"); err == nil {
			quota, period, ok := strings.Cut(strings.TrimSpace(string(text)), " ")
			q, bad := limit(quota)
			p, also := limit(period)
			if !ok || bad != nil || also != nil {
				errs = append(errs, fmt.Errorf("cgroups: cpu.max: %q is not a quota and a period", text))
			} else {
				r.CPUQuota, r.CPUPeriod = &q, &p
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("cgroups: cpu.max: %w", err))
		}
		r.Memory, r.MemoryMin = number("memory", "memory.max"), number("memory", "memory.min")
		r.MemoryLow, r.MemoryHigh = number("memory", "memory.low"), number("memory", "memory.high")
	} else {
		r.CPUShares = number("cpu", "cpu.shares")
		r.CPUQuota, r.CPUPeriod = number("cpu", "cpu.cfs_quota_us"), number("cpu", "cpu.cfs_period_us")
		r.Memory = number("memory", "memory.limit_in_bytes")
	}
	r.Pids = number("pids", "pids.max")
	for _, size := range hugePages {
		file := "hugetlb." + PageSizeName(size) + ".limit_in_bytes"
		if f.Version == 2 {
			file = "hugetlb." + PageSizeName(size) + ".max"
		}
		if n := number("hugetlb", file); n != nil {
			if r.HugePages == nil {
				r.HugePages = map[int64]int64{}
			}
			r.HugePages[size] = *n
		}
	}
	return r, errors.Join(errs...)
}

// limit parses a limit; "max" and the maximum of cgroup v1 mean Unlimited.
func limit(text string) (int64, error) {
	text = strings.TrimSpace(text)
	if text == "max" {
		return Unlimited, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%.64q is not a number", text)
	case n < 0 || n >= noLimit:
		return Unlimited, nil
	}
	return n, nil
}

// Only returns r without the values of missing controllers.
func (f Facts) Only(r Resources) Resources {
	if !f.Has("cpu") {
		r.CPUShares, r.CPUWeight, r.CPUQuota, r.CPUPeriod = nil, nil, nil, nil
	}
	if !f.Has("memory") {
		r.Memory, r.MemoryMin, r.MemoryLow, r.MemoryHigh = nil, nil, nil, nil
	}
	if f.Version != 2 || !f.Has("cpuset") {
		r.CPUs = ""
	}
	if f.Version != 2 {
		r.MemoryMin, r.MemoryLow, r.MemoryHigh = nil, nil, nil
	}
	if !f.Has("pids") {
		r.Pids = nil
	}
	if !f.Has("hugetlb") {
		r.HugePages = nil
	}
	return r
}
