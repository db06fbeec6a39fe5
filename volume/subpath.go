package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// A SubPath is the part of a volume that one volumeMount of a container wants.
type SubPath struct {
	PodUID     types.UID
	Volume     string // the pod's name of it
	VolumePath string // where it is: runtime.Volume.Path
	Container  string
	Index      int    // of the volumeMount
	Path       string // in the volume, its variables expanded
}

// SubPath makes the part of the volume, if it is not there, and binds it to a
// directory of the agent's own, whose path it returns: whoever can write to the
// volume cannot lead a container out of it, not by what it puts there and not by
// changing it meanwhile (vol-69, vol-70). The binding goes with the volume.
func (m *Manager) SubPath(ctx context.Context, sub SubPath) (string, error) {
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

// checkSubPath refuses what cannot be a path in a volume (vol-69).
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

// removeSubPaths unmounts what is bound below dir, and removes the directories
// and empty files that it was bound to (vol-23).
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

// removeTargetFile removes the empty file that a file was bound to.
func removeTargetFile(m Mounter, path string) error {
	if err := unmountAt(m, path); err != nil {
		return err
	}
	if info, err := os.Lstat(path); err != nil || info.Size() > 0 {
		return errors.Join(err, fmt.Errorf("volume: sub-paths: %s is not empty", path))
	}
	return os.Remove(path)
}
