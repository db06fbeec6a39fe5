package volume

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Share makes mounts below dir, the agent's RootDir, go from the machine to
// containers, and from those that may (Bidirectional) to the machine: drivers in
// pods mount volumes that way. What is so already stays as it is; else dir becomes
// a mount of its own, recursively shared, and stays one when the agent ends, as
// the kubelet's does (section 6.1). It needs to be called once at each start,
// before anything is mounted.
func MakeShared(dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("volume: share: %w", err)
	}
	info, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("volume: share: %w", err)
	}
	defer info.Close()
	at, shared, below := "", false, ""
	lines := bufio.NewScanner(info)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		// 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw
		fields := strings.Fields(lines.Text())
		if len(fields) < 7 {
			continue
		}
		point := ListedPath(fields[4])
		switch {
		case inside(real, point): // the last of the deepest is what is seen
			if len(point) >= len(at) {
				options, _, _ := cut(fields[6:], "-")
				at, shared = point, slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, "shared:") })
			}
		case inside(point, real):
			below = point
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("volume: share: %w", err)
	}
	switch {
	case shared:
		return nil
	case at == real:
	case below != "":
		return fmt.Errorf("volume: share %s: %s is mounted below it already, and a mount over it would hide that", dir, below)
	default:
		if err := unix.Mount(real, real, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("volume: share %s: bind it: %w", dir, err)
		}
	}
	if err := unix.Mount("", real, "", unix.MS_SHARED|unix.MS_REC, ""); err != nil {
		err = fmt.Errorf("volume: share %s: %w", dir, err)
		if at != real {
			err = errors.Join(err, unix.Unmount(real, 0))
		}
		return err
	}
	return nil
}

// inside reports whether path is dir, or below it.
func inside(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// cut splits a list at the first field that is sep.
func cut(list []string, sep string) (before, after []string, found bool) {
	if i := slices.Index(list, sep); i >= 0 {
		return list[:i], list[i+1:], true
	}
	return list, nil, false
}
