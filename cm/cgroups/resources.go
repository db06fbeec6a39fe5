package cgroups

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Unlimited is the value of an absent limit.
const Unlimited = -1

// Resources are the resources of a cgroup. A nil value is not changed when they are
// applied.
type Resources struct {
	// CPUShares is in the unit of cgroup v1. With v2 it is converted to a weight.
	CPUShares *int64

	// CPUWeight is the weight of cgroup v2, as it is read back. It overrides CPUShares.
	CPUWeight *int64

	// CPUQuota is the CPU time per CPUPeriod, both in microseconds. Unlimited means no
	// quota. A nil period with a quota means DefaultPeriod.
	CPUQuota, CPUPeriod *int64

	// Memory is the memory limit in bytes.
	Memory *int64

	// MemoryMin, MemoryLow and MemoryHigh are in bytes: memory that the kernel never
	// reclaims, memory that it reclaims last, and the usage above which it throttles.
	// Cgroup v2 only.
	MemoryMin, MemoryLow, MemoryHigh *int64

	// Pids is the maximum number of processes and threads.
	Pids *int64

	// HugePages are limits in bytes by page size in bytes.
	HugePages map[int64]int64

	// CPUs are those that the cgroup may use, such as "0-3,8". Empty: not changed. Cgroup
	// v2 only; it is not read back.
	CPUs string
}

// Or returns r with unset values taken from other.
func (r Resources) Or(other Resources) Resources {
	out := r
	for i, field := range out.fields() {
		if *field == nil {
			*field = *other.fields()[i]
		}
	}
	out.CPUs = cmp.Or(r.CPUs, other.CPUs)
	if len(other.HugePages) > 0 {
		out.HugePages = maps.Clone(other.HugePages)
		maps.Copy(out.HugePages, r.HugePages)
	}
	return out
}

// fields returns the values other than HugePages, in a fixed order.
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

// String lists the values that are set: "cpu shares 512, memory 1048576".
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
	if r.CPUs != "" {
		parts = append(parts, "cpus "+r.CPUs)
	}
	return strings.Join(parts, ", ")
}

// A Change is a value that differs from the desired one.
type Change struct {
	Resource        string // "memory", "hugepages 2MB"
	Actual, Desired int64  // Unlimited: no limit; Actual is 0 if it cannot be read
}

// String returns a text such as "memory is 100, not 200".
func (c Change) String() string {
	return fmt.Sprintf("%s is %d, not %d", c.Resource, c.Actual, c.Desired)
}

// Drift returns the values in which a cgroup differs from its desired resources; both are
// in the form of [Facts].AsRead. Values that are nil in either of them are ignored.
func Drift(has, wanted Resources) []Change {
	var out []Change
	for i, want := range wanted.fields() {
		is := has.fields()[i]
		if *want != nil && *is != nil && **want != **is {
			out = append(out, Change{Resource: fieldNames[i], Actual: **is, Desired: **want})
		}
	}
	for _, size := range slices.Sorted(maps.Keys(wanted.HugePages)) {
		if is, ok := has.HugePages[size]; ok && is != wanted.HugePages[size] {
			out = append(out, Change{Resource: "hugepages " + PageSizeName(size), Actual: is, Desired: wanted.HugePages[size]})
		}
	}
	return out
}

// PageSizeName returns a page size in the notation of the kernel's file names: 2MB, 1GB.
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
