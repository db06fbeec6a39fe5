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
		calls, err := mountCalls(dir, path)
		if err != nil {
			return remove, err
		}
		for i, args := range calls {
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

// mountCalls makes an empty directory below dir, and returns the arguments of the calls of mount that mount it on path.
func mountCalls(dir, path string) ([][]string, error) {
	own := filepath.Join(dir, "machine", path)
	// Otherwise what is mounted in the one would appear in the other as well.
	return [][]string{{"--bind", own, path}, {"--make-private", path}, {"--make-shared", path}}, errors.Join(os.MkdirAll(own, 0o755), os.MkdirAll(path, 0o755))
}
