package isolate

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Directories mounts empty directories below dir on directories of the machine. remove unmounts them, and what is
// mounted in them; it must be called also with an error. The process must be isolated.
func Directories(dir string, paths ...string) (remove func() error, err error) {
	var mounted []string
	remove = func() error {
		for _, path := range mounted {
			if out, err := exec.Command("umount", "--recursive", "--lazy", path).CombinedOutput(); err != nil {
				return fmt.Errorf("umount %s: %w: %s", path, err, out)
			}
		}
		return nil
	}
	for _, path := range paths {
		own := filepath.Join(dir, "machine", path)
		if err := errors.Join(os.MkdirAll(own, 0o755), os.MkdirAll(path, 0o755)); err != nil {
			return remove, err
		}
		// Otherwise what is mounted in the one would appear in the other as well.
		for i, args := range [][]string{{"--bind", own, path}, {"--make-private", path}, {"--make-shared", path}} {
			if out, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
				return remove, fmt.Errorf("mount %s: %w: %s", path, err, out)
			}
			if i == 0 {
				mounted = append(mounted, path)
			}
		}
	}
	return remove, nil
}
