package cm

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/internal/podspec"
)

// ReadCapacity reads what a Linux machine has: cpu, memory, huge pages of each
// size, and process IDs ("pid"). root is the machine's, os.DirFS("/"). What it does
// not tell is left out; the error is a file that is there and can't be read.
func ReadCapacity(root fs.FS) (v1.ResourceList, error) {
	out := v1.ResourceList{}
	online, err := read(root, "sys/devices/system/cpu/online")
	if err != nil {
		return nil, err
	}
	if online != "" {
		cpus, err := topology.ParseCPUs(online)
		if err != nil {
			return nil, fmt.Errorf("cm: sys/devices/system/cpu/online: %w", err)
		}
		out[v1.ResourceCPU] = quantity(int64(cpus.Size()))
	}
	meminfo, err := read(root, "proc/meminfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(meminfo) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "MemTotal:" {
			if kilobytes, err := strconv.ParseInt(fields[1], 10, 53); err == nil {
				out[v1.ResourceMemory] = quantity(kilobytes << 10)
			}
		}
	}
	pages, err := podspec.ReadHugePages(root, podspec.HugePagesDir)
	if err != nil {
		return nil, fmt.Errorf("cm: %w", err)
	}
	for size, count := range pages {
		out[podspec.HugePagesName(size)] = quantity(count * size)
	}
	pids, err := maxPIDs(root)
	if err != nil {
		return nil, err
	}
	if pids > 0 {
		out[ResourcePID] = quantity(pids)
	}
	return out, nil
}

// maxPIDs is how many threads there may be: the smaller of two bounds (ev-13).
func maxPIDs(root fs.FS) (int64, error) {
	var least int64
	for _, file := range []string{"proc/sys/kernel/pid_max", "proc/sys/kernel/threads-max"} {
		text, err := read(root, file)
		if err != nil {
			return 0, err
		}
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least, nil
}

// read returns a file's text without the space around it; "" if it is not there.
func read(root fs.FS, file string) (string, error) {
	text, err := fs.ReadFile(root, file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cm: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
