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

// CgroupMemory returns a measure of memory for [Config.Memory]: what is left of a
// control group's limit, without the page cache that would be given back. It is
// for nodes that are not all of a machine. group is the group's directory, of the
// memory controller with cgroup v1. A group without a limit is an error.
func CgroupMemory(group fs.FS) func(ctx context.Context) (MemoryFigure, error) {
	return func(context.Context) (MemoryFigure, error) {
		limitFile, usageFile, cacheField := "memory.max", "memory.current", "inactive_file"
		if _, err := fs.Stat(group, usageFile); errors.Is(err, fs.ErrNotExist) {
			limitFile, usageFile, cacheField = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
		}
		limit, errLimit := groupFile(group, limitFile)
		usage, errUsage := groupFile(group, usageFile)
		stat, errStat := fs.ReadFile(group, "memory.stat")
		if err := errors.Join(errLimit, errUsage, errStat); err != nil {
			return MemoryFigure{}, err
		}
		if limit > 1<<60 { // v1 has a large number where v2 says "max"
			return MemoryFigure{}, fmt.Errorf("eviction: %s: there is no limit", limitFile)
		}
		cache := int64(0)
		for line := range strings.Lines(string(stat)) {
			if name, value, _ := strings.Cut(strings.TrimSpace(line), " "); name == cacheField {
				cache, _ = strconv.ParseInt(value, 10, 64)
			}
		}
		used := max(usage-max(cache, 0), 0)
		return MemoryFigure{Available: max(limit-used, 0), Capacity: limit, At: time.Now()}, nil
	}
}

func groupFile(group fs.FS, name string) (int64, error) {
	text, err := fs.ReadFile(group, name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("eviction: %s: %q is no number of bytes", name, strings.TrimSpace(string(text)))
	}
	return n, nil
}
