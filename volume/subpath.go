package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kubeparts/kubeparts/runtime"
)

// SubPath creates the sub-path in the volume if it does not exist, bind-mounts it to a directory in the
// pod's directory, and returns the latter. Symbolic links in the volume, including those changed
// concurrently, cannot make the mount refer to a path outside the volume. The mount is removed when the
// volume is torn down. It returns errors.ErrUnsupported on systems other than Linux, and if the process
// may not mount.
func (m *Manager) SubPath(ctx context.Context, sub runtime.SubPath) (string, error) {
	if _, directories := m.cfg.Mounter.(directoryMounter); directories {
		return "", fmt.Errorf("volume: sub-paths without mounts: %w", errors.ErrUnsupported)
	}
	m.mu.Lock()
	name := sub.Volume
	if v := m.world.named(sub.PodUID, sub.Volume); v != nil {
		name = v.place.Name
	}
	m.mu.Unlock()
	at := Place{RootDir: m.cfg.RootDir, PodUID: sub.PodUID, Plugin: "sub-path", Name: name}
	if err := at.check(); err != nil {
		return "", err
	}
	if err := checkName(sub.Container); err != nil {
		return "", fmt.Errorf("volume: container %q: %w", sub.Container, err)
	}
	if err := checkSubPath(sub.Path); err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return bindSubPath(m.cfg.Mounter, sub.VolumePath, sub.Path, filepath.Join(at.subPathsDir(), sub.Container, strconv.Itoa(sub.Index)))
}

// checkSubPath returns an error if path is not a valid path in a volume.
func checkSubPath(path string) error {
	switch {
	case strings.ContainsRune(path, 0):
		return fmt.Errorf("volume: subPath %q has a zero byte", path)
	case filepath.IsAbs(path) || strings.HasPrefix(path, "/"):
		return fmt.Errorf("volume: subPath %q must be a relative path", path)
	case !filepath.IsLocal(path) || strings.Contains("/"+filepath.ToSlash(path)+"/", "/../"):
		return fmt.Errorf("volume: subPath %q must not contain '..'", path)
	}
	return nil
}

// removeSubPaths unmounts the bind mounts below dir and removes the directories and empty files that are
// their mount points.
func removeSubPaths(ctx context.Context, m Mounter, dir string) error {
	if there, err := exists(dir); !there || err != nil {
		return err
	}
	if removeTargets(ctx, m, dir) == nil {
		return nil
	}
	if err := unmountBelow(m, dir); err != nil { // something may be mounted below a target
		return err
	}
	return removeTargets(ctx, m, dir)
}

func removeTargets(ctx context.Context, m Mounter, dir string) error {
	if err := unmountAt(m, dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("volume: sub-paths: %w", err)
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		path := filepath.Join(dir, e.Name())
		if e.IsDir() {
			err = removeTargets(ctx, m, path)
		} else {
			err = removeTargetFile(m, path)
		}
		if err != nil {
			return err
		}
	}
	return os.Remove(dir)
}

// removeTargetFile removes the empty file that is the mount point of a file.
func removeTargetFile(m Mounter, path string) error {
	if err := unmountAt(m, path); err != nil {
		return err
	}
	if info, err := os.Lstat(path); err != nil || info.Size() > 0 {
		return errors.Join(err, fmt.Errorf("volume: sub-paths: %s is not empty", path))
	}
	return os.Remove(path)
}
