package volume

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// MakeShared makes mounts below dir, the agent's RootDir, propagate from the host to containers, and
// from containers with Bidirectional propagation to the host, as drivers in pods require. If dir is not
// on a shared mount, it becomes a recursively shared bind mount, which persists after the agent exits.
// It must be called at each start before anything is mounted.
func MakeShared(dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("volume: share: %w", err)
	}
	at, shared, below := "", false, ""
	if _, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		switch {
		case inside(real, m.Mountpoint): // the last mount at the deepest mount point is visible
			if len(m.Mountpoint) >= len(at) {
				at, shared = m.Mountpoint, strings.HasPrefix(m.Optional, "shared:") || strings.Contains(m.Optional, " shared:")
			}
		case inside(m.Mountpoint, real):
			below = m.Mountpoint
		}
		return true, false
	}); err != nil {
		return fmt.Errorf("volume: share: %w", err)
	}
	switch {
	case shared:
		return nil
	case at == real:
	case below != "":
		return fmt.Errorf("volume: share %s: %s is mounted below it already and would be hidden", dir, below)
	default:
		if err := unix.Mount(real, real, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("volume: share %s: bind mount: %w", dir, err)
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

// inside reports whether path is dir or below it.
func inside(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
