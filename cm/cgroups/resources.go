package cgroups

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Unlimited is a limit that does not limit.
const Unlimited = -1

// Resources are what a cgroup has or is to have. A nil value is left as it is.
type Resources struct {
	// CPUShares in the units of cgroup v1, which v2 turns into a weight.
	CPUShares *int64

	// CPUWeight of cgroup v2 is what is read back there; it wins over CPUShares.
	CPUWeight *int64

	// CPUQuota is the CPU time in a period, both in microseconds. Unlimited:
	// there is no quota. A nil period with a quota is the default one.
	CPUQuota, CPUPeriod *int64

	// Memory is the limit in bytes.
	Memory *int64

	// MemoryMin, MemoryLow and MemoryHigh in bytes: what the kernel does not take
	// back, what it takes back last, and where it begins to slow down. Cgroup v2
	// only.
	MemoryMin, MemoryLow, MemoryHigh *int64

	// Pids is how many processes there may be.
	Pids *int64

	// HugePages are limits in bytes by page size in bytes.
	HugePages map[int64]int64
}

// Or returns r with the values of other where r has none.
func (r Resources) Or(other Resources) Resources {
	out := r
	for i, field := range out.fields() {
		if *field == nil {
			*field = *other.fields()[i]
		}
	}
	if len(other.HugePages) > 0 {
		out.HugePages = maps.Clone(other.HugePages)
		maps.Copy(out.HugePages, r.HugePages)
	}
	return out
}

// fields are the single values, in a fixed order.
func (r *Resources) fields() []**int64 {
	return []**int64{
		&r.CPUShares, &r.CPUWeight, &r.CPUQuota, &r.CPUPeriod,
		&r.Memory, &r.MemoryMin, &r.MemoryLow, &r.MemoryHigh, &r.Pids,
	}
}

var fieldNames = []string{
	"cpu shares", "cpu weight", "cpu quota", "cpu period",
	"memory", "memory min", "memory low", "memory high", "pids",
}

// String lists what is there: "cpu shares 512, memory 1048576".
func (r Resources) String() string {
	var parts []string
	for i, field := range r.fields() {
		if *field != nil {
			parts = append(parts, fieldNames[i]+" "+strconv.FormatInt(**field, 10))
		}
	}
	for _, size := range slices.Sorted(maps.Keys(r.HugePages)) {
		parts = append(parts, fmt.Sprintf("hugepages %s %d", PageSizeName(size), r.HugePages[size]))
	}
	return strings.Join(parts, ", ")
}

// A Change is a value that is not what it should be.
type Change struct {
	What        string // "memory", "hugepages 2MB"
	Has, Wanted int64  // Unlimited: no limit; Has is 0 if it can't be told
}

// String says it in words: "memory is 100, not 200".
func (c Change) String() string { return fmt.Sprintf("%s is %d, not %d", c.What, c.Has, c.Wanted) }

// Drift returns in which values a cgroup differs from what it is to have, both as
// [Facts].AsRead has them. Values that are not wanted, and those that the kernel
// did not tell, do not count.
func Drift(has, wanted Resources) []Change {
	var out []Change
	for i, want := range wanted.fields() {
		is := has.fields()[i]
		if *want != nil && *is != nil && **want != **is {
			out = append(out, Change{What: fieldNames[i], Has: **is, Wanted: **want})
		}
	}
	for _, size := range slices.Sorted(maps.Keys(wanted.HugePages)) {
		if is, ok := has.HugePages[size]; ok && is != wanted.HugePages[size] {
			out = append(out, Change{What: "hugepages " + PageSizeName(size), Has: is, Wanted: wanted.HugePages[size]})
		}
	}
	return out
}

// PageSizeName writes a page size as the kernel's files are named: 2MB, 1GB.
func PageSizeName(bytes int64) string {
	for _, unit := range []struct {
		name string
		size int64
	}{{"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}} {
		if bytes >= unit.size && bytes%unit.size == 0 {
			return strconv.FormatInt(bytes/unit.size, 10) + unit.name
		}
	}
	return strconv.FormatInt(bytes, 10) + "B"
}
