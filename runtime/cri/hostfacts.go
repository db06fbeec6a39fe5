package cri

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// ReadFacts reads the properties of a Linux machine for [Node].Facts: memory and swap, the
// cgroup version, the huge page sizes, the kernel release, whether AppArmor and SELinux
// are enabled, and the directories of thermal throttling. Fields that are configuration
// are left zero. root is the root file system, os.DirFS("/").
//
// Fields of missing files are left zero. It returns an error if an existing file cannot
// be read.
func ReadFacts(root fs.FS) (podconfig.Node, error) {
	var n podconfig.Node
	memory, err := readMemInfo(root)
	if err != nil {
		return n, err
	}
	n.MemoryBytes, n.Swap.Bytes = memory["MemTotal"], memory["SwapTotal"]

	// The root cgroup has no limits, so the swap controller is detected in a child.
	limits := "sys/fs/cgroup/*/memory.swap.max"
	switch {
	case exists(root, "sys/fs/cgroup/cgroup.controllers"):
		n.CgroupVersion = 2
	case exists(root, "sys/fs/cgroup/memory"):
		n.CgroupVersion, limits = 1, "sys/fs/cgroup/memory/memory.memsw.limit_in_bytes"
	}
	found, err := fs.Glob(root, limits)
	if err != nil {
		return n, fmt.Errorf("cri: %w", err)
	}
	n.Swap.Controller = n.CgroupVersion != 0 && len(found) > 0

	pages, err := podspec.ReadHugePages(root, podspec.HugePagesDir)
	if err != nil {
		return n, fmt.Errorf("cri: %w", err)
	}
	n.HugePageSizes = slices.Sorted(maps.Keys(pages))

	throttles, err := fs.Glob(root, "sys/devices/system/cpu/cpu[0-9]*/thermal_throttle")
	if err != nil {
		return n, fmt.Errorf("cri: %w", err)
	}
	for _, dir := range throttles {
		n.Security.ThermalThrottleDirs = append(n.Security.ThermalThrottleDirs, "/"+dir)
	}
	n.Kernel = content(root, "proc/sys/kernel/osrelease")
	n.Security.AppArmor = strings.HasPrefix(content(root, "sys/module/apparmor/parameters/enabled"), "Y")
	n.Security.SELinux = seLinux(root)
	return n, nil
}

// content returns the trimmed content of a file; "" if it cannot be read.
func content(root fs.FS, path string) string {
	data, _ := fs.ReadFile(root, path)
	return strings.TrimSpace(string(data))
}

// seLinux reports whether SELinux is enabled: its file system is mounted and a policy is
// loaded. Without a policy every process has the context "kernel". Where SELinux is off,
// the file is missing or belongs to another security module.
func seLinux(root fs.FS) bool {
	if !exists(root, "sys/fs/selinux/enforce") {
		return false
	}
	context, err := fs.ReadFile(root, "proc/self/attr/current")
	return err == nil && strings.TrimRight(string(context), "\x00\n") != "kernel"
}

// readMemInfo returns the lines of /proc/meminfo, in bytes.
func readMemInfo(root fs.FS) (map[string]int64, error) {
	bytes := map[string]int64{}
	text, err := fs.ReadFile(root, "proc/meminfo")
	if errors.Is(err, fs.ErrNotExist) {
		return bytes, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cri: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if fields := strings.Fields(value); len(fields) == 2 && fields[1] == "kB" {
			if kilobytes, err := strconv.ParseInt(fields[0], 10, 53); err == nil {
				bytes[name] = kilobytes << 10
			}
		}
	}
	return bytes, nil
}

func exists(root fs.FS, path string) bool {
	_, err := fs.Stat(root, path)
	return err == nil
}
