package node

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// ReadInfo reads the NodeSystemInfo of a Linux machine, except the versions of kubelet and
// runtime, from files below root, which is os.DirFS("/"). Values that cannot be read are
// empty; the error lists them.
func ReadInfo(root fs.FS) (v1.NodeSystemInfo, error) {
	info := v1.NodeSystemInfo{OperatingSystem: goruntime.GOOS, Architecture: goruntime.GOARCH}
	var errs []error
	read := func(paths ...string) string {
		var last error
		for _, path := range paths {
			data, err := fs.ReadFile(root, path)
			if err == nil {
				return strings.TrimSpace(string(data))
			}
			last = err
		}
		errs = append(errs, last)
		return ""
	}
	info.MachineID = read("etc/machine-id", "var/lib/dbus/machine-id")
	info.BootID = read("proc/sys/kernel/random/boot_id")
	info.KernelVersion = read("proc/sys/kernel/osrelease")
	// Machines without such firmware have none.
	info.SystemUUID = info.MachineID
	for _, path := range []string{"sys/class/dmi/id/product_uuid", "proc/device-tree/vm,uuid", "etc/machine-id"} {
		if data, err := fs.ReadFile(root, path); err == nil {
			info.SystemUUID = strings.TrimSpace(strings.Trim(string(data), "\x00"))
			break
		}
	}
	info.OSImage = osImage(read("etc/os-release", "usr/lib/os-release"))
	// The API server rejects a swap capacity of 0.
	if swap, ok := swapBytes(read("proc/meminfo")); ok && swap > 0 {
		info.Swap = &v1.NodeSwapStatus{Capacity: &swap}
	}
	if inside, err := InUserNamespace(root); err != nil {
		errs = append(errs, err)
	} else {
		info.RunningInUserNamespace = &inside
	}
	if err := errors.Join(errs...); err != nil {
		return info, fmt.Errorf("node: read system info: %w", err)
	}
	return info, nil
}

// InUserNamespace reports whether this process is in a user namespace other than the initial
// one: user 0 is not root of the machine there. It returns an error if proc/self/uid_map cannot
// be read, as on systems other than Linux. root is os.DirFS("/").
func InUserNamespace(root fs.FS) (bool, error) {
	mapping, err := fs.ReadFile(root, "proc/self/uid_map")
	if err != nil {
		return false, err
	}
	return !slices.Equal(strings.Fields(string(mapping)), initialUsers), nil // empty: no user is mapped yet
}

// initialUsers is the mapping of users in the initial user namespace.
var initialUsers = []string{"0", "0", "4294967295"}

// osImage returns the PRETTY_NAME of an os-release file (rule ns-16).
func osImage(release string) string {
	for line := range strings.Lines(release) {
		value, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME=")
		if !ok {
			continue
		}
		if len(value) > 1 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
			return value[1 : len(value)-1]
		}
		return value
	}
	return "Linux"
}

// swapBytes returns the total size of swap; false if it is not reported.
func swapBytes(meminfo string) (int64, bool) {
	scanner := bufio.NewScanner(bytes.NewReader([]byte(meminfo)))
	for scanner.Scan() {
		fields := strings.Fields(scanner.Text())
		if len(fields) < 2 || fields[0] != "SwapTotal:" {
			continue
		}
		kb, err := strconv.ParseInt(fields[1], 10, 64)
		return kb * 1024, err == nil
	}
	return 0, false
}

// RuntimeVersion returns the containerRuntimeVersion of the node status:
// "containerd://2.1.0" (rule ns-16). A version that is not semantic is shortened to its numbers,
// as "1.6.20~ds1" of Debian. If version is empty, it is "Unknown".
func RuntimeVersion(name, version string) string {
	if version == "" {
		version = "Unknown"
	} else if rest := strings.TrimLeft(version, "0123456789."); rest != "" && rest != version && !strings.ContainsAny(rest[:1], "-+") {
		version = strings.TrimSuffix(version, rest)
	}
	return name + "://" + version
}
