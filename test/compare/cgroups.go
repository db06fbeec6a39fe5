//go:build unix

package compare

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const cgroupMount = "/sys/fs/cgroup"

// cgroupFiles are the settings that are compared, of both versions of cgroups.
var cgroupFiles = []string{
	"cpu.shares", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpuset.cpus", "cpuset.mems", "pids.max", "devices.list",
	"memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.soft_limit_in_bytes", "memory.swappiness", "memory.oom_control",
	"hugetlb.2MB.limit_in_bytes", "hugetlb.1GB.limit_in_bytes",
	"cpu.weight", "cpu.max", "memory.min", "memory.low", "memory.high", "memory.max", "memory.swap.max", "memory.oom.group", "hugetlb.2MB.max",
}

// hierarchies returns the mounts of cgroups: one for version 2, one for each controller for
// version 1.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroupMount, "cgroup.controllers")); err == nil {
		return []string{cgroupMount}, nil
	}
	entries, err := os.ReadDir(cgroupMount)
	if err != nil {
		return nil, err
	}
	var mounts []string
	for _, e := range entries {
		if e.IsDir() { // other names of a hierarchy are links
			mounts = append(mounts, filepath.Join(cgroupMount, e.Name()))
		}
	}
	return mounts, nil
}

// makeCgroups creates a cgroup in each hierarchy, because the kubelet requires that its
// cgroupRoot exists.
func makeCgroups(name string) error {
	mounts, err := hierarchies()
	if err != nil {
		return err
	}
	for _, mount := range mounts {
		if err := os.Mkdir(filepath.Join(mount, name), 0o755); err != nil {
			return err
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // empty in a new cgroup of version 1
			data, err := os.ReadFile(filepath.Join(mount, file))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			} else if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(mount, name, file), data, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeCgroups removes the cgroups of makeCgroups and those below them.
func removeCgroups(name string) error {
	mounts, err := hierarchies()
	for _, mount := range mounts {
		var dirs []string
		_ = filepath.WalkDir(filepath.Join(mount, name), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		for _, dir := range slices.Backward(dirs) {
			err = errors.Join(err, os.Remove(dir))
		}
	}
	return err
}

// readCgroups returns the settings of the cgroups below one, by the hierarchy and the path
// below it: "cpu/kubepods/burstable/cpu.shares". A cgroup that is removed meanwhile is
// omitted.
func readCgroups(name string) (map[string]string, error) {
	mounts, err := hierarchies()
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, mount := range mounts {
		top := filepath.Join(mount, name)
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !slices.Contains(cgroupFiles, d.Name()) {
				return nil
			}
			data, err := os.ReadFile(path)
			if err == nil {
				below, _ := filepath.Rel(top, path)
				found[filepath.Join(filepath.Base(mount), below)] = strings.TrimSpace(string(data))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}
