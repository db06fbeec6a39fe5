//go:build unix

package compare

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubeparts/kubeparts/test/internal/cgroupdir"
)

// cgroupFiles are the settings that are compared, of both versions of cgroups.
var cgroupFiles = []string{
	"cpu.shares", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpuset.cpus", "cpuset.mems", "pids.max", "devices.list",
	"memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.soft_limit_in_bytes", "memory.swappiness", "memory.oom_control",
	"hugetlb.2MB.limit_in_bytes", "hugetlb.1GB.limit_in_bytes",
	"cpu.weight", "cpu.max", "memory.min", "memory.low", "memory.high", "memory.max", "memory.swap.max", "memory.oom.group", "hugetlb.2MB.max", "hugetlb.1GB.max",
}

// readCgroups returns the settings of the cgroups below one, by the hierarchy and the path
// below it: "cpu/kubepods/burstable/cpu.shares". A cgroup that is removed meanwhile is
// omitted.
func readCgroups(name string) (map[string]string, error) {
	tops, err := cgroupdir.Of(name)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, top := range tops {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !slices.Contains(cgroupFiles, d.Name()) {
				return nil
			}
			data, err := os.ReadFile(path)
			if err == nil {
				below, _ := filepath.Rel(top, path)
				found[filepath.Join(filepath.Base(filepath.Dir(top)), below)] = strings.TrimSpace(string(data))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}
