package isolate

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// makeCgroups makes a cgroup in each hierarchy of cgroup v1, and returns their directories. In v2 it makes
// none: the processes of a run would be in the way of cgroups below.
func makeCgroups(name string) (dirs []string, err error) {
	hierarchies, err := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	for _, file := range hierarchies {
		parent := filepath.Dir(file)
		dir := filepath.Join(parent, name)
		dirs = append(dirs, dir)
		err = errors.Join(err, os.MkdirAll(dir, 0o755))
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // empty in a new cgroup
			if text, readErr := os.ReadFile(filepath.Join(parent, file)); readErr == nil {
				err = errors.Join(err, os.WriteFile(filepath.Join(dir, file), text, 0o644))
			}
		}
	}
	return dirs, err
}

// removeCgroups removes cgroups and those below them, children first. Their processes have been
// killed; some may not have ended yet.
func removeCgroups(roots []string) (err error) {
	for _, root := range roots {
		var dirs []string
		err = errors.Join(err, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return err
		}))
		for i := len(dirs) - 1; i >= 0; i-- {
			removeErr := os.Remove(dirs[i])
			for try := 0; errors.Is(removeErr, syscall.EBUSY) && try < 100; try++ {
				time.Sleep(50 * time.Millisecond)
				removeErr = os.Remove(dirs[i])
			}
			err = errors.Join(err, removeErr)
		}
	}
	return err
}
