// Package cgroupdir makes and removes cgroups as directories, in the only hierarchy of cgroup v2, or in all of v1.
package cgroupdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

const mount = "/sys/fs/cgroup"

// V2 reports whether the machine has cgroup v2 only.
func V2() bool {
	_, err := os.Stat(filepath.Join(mount, "cgroup.controllers"))
	return err == nil
}

// Of returns the directories of a cgroup, one for each hierarchy, whether they exist or not.
func Of(name string) (dirs []string, err error) {
	if V2() {
		return []string{filepath.Join(mount, name)}, nil
	}
	entries, err := os.ReadDir(mount)
	for _, e := range entries {
		if e.IsDir() { // other names of a hierarchy are links
			dirs = append(dirs, filepath.Join(mount, e.Name(), name))
		}
	}
	return dirs, err
}

// Make makes cgroups in the root of their hierarchies.
func Make(dirs []string) (err error) {
	for _, dir := range dirs {
		err = errors.Join(err, os.MkdirAll(dir, 0o755))
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // empty in a new cgroup of v1
			if text, readErr := os.ReadFile(filepath.Join(filepath.Dir(dir), file)); readErr == nil {
				err = errors.Join(err, os.WriteFile(filepath.Join(dir, file), text, 0o644))
			}
		}
	}
	return err
}

// Remove removes cgroups and those below them, children first. Their processes have been killed; those that have not
// ended yet are waited for.
func Remove(dirs []string) (err error) {
	for _, dir := range dirs {
		var below []string
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // others may remove them as well
			if err == nil && d.IsDir() {
				below = append(below, path)
			}
			return nil
		})
		for _, path := range slices.Backward(below) {
			removeErr := os.Remove(path)
			for try := 0; errors.Is(removeErr, syscall.EBUSY) && try < 100; try++ {
				time.Sleep(50 * time.Millisecond)
				removeErr = os.Remove(path)
			}
			err = errors.Join(err, removeErr)
		}
	}
	return err
}
