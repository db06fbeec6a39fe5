package eviction

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// CgroupMemory returns a function for Config.Memory that reports the difference of a
// cgroup's memory limit and its usage without reclaimable page cache. It is for nodes that
// are confined to a part of a machine. group is the directory of the cgroup, with cgroup v1
// that of the memory controller. The function returns an error if the cgroup has no limit.
func CgroupMemory(group fs.FS) func(ctx context.Context) (Observation, error) {
	return func(context.Context) (Observation, error) {
		limitFile, usageFile, cacheField := "memory.max", "memory.current", "inactive_file"
		if _, err := fs.Stat(group, usageFile); errors.Is(err, fs.ErrNotExist) {
			limitFile, usageFile, cacheField = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
		}
		limit, errLimit := groupFile(group, limitFile)
		usage, errUsage := groupFile(group, usageFile)
		stat, errStat := fs.ReadFile(group, "memory.stat")
		if err := errors.Join(errLimit, errUsage, errStat); err != nil {
			return Observation{}, err
		}
		if limit > 1<<60 { // cgroup v1 has a large number instead of "max"
			return Observation{}, fmt.Errorf("eviction: %s: no limit", limitFile)
		}
		cache := int64(0)
		for line := range strings.Lines(string(stat)) {
			if name, value, _ := strings.Cut(strings.TrimSpace(line), " "); name == cacheField {
				cache, _ = strconv.ParseInt(value, 10, 64)
			}
		}
		used := max(usage-max(cache, 0), 0)
		return Observation{Available: max(limit-used, 0), Capacity: limit, At: time.Now()}, nil
	}
}

func groupFile(group fs.FS, name string) (int64, error) {
	text, err := fs.ReadFile(group, name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("eviction: %s: %q is not a number of bytes", name, strings.TrimSpace(string(text)))
	}
	return n, nil
}
