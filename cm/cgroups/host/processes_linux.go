package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	oci "github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"

	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// Processes returns the processes in the cgroup and its descendants, sorted. Processes of
// another PID namespace are 0. A cgroup that does not exist has none.
func (t *Tree) Processes(name cgroups.Name) ([]int, error) {
	if err := name.Check(); err != nil {
		return nil, err
	}
	pids, err := processesIn(t.allDirs(name))
	if err != nil {
		return nil, fmt.Errorf("host: processes of %s: %w", name, explain(err))
	}
	return pids, nil
}

// CheckWritable returns an error that is fs.ErrPermission or cgroups.ErrReadOnly if this
// process may not change the cgroup.
func (t *Tree) CheckWritable(name cgroups.Name) error {
	if err := name.Check(); err != nil {
		return err
	}
	for _, dir := range t.Dirs(name) {
		err := unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK, unix.AT_EACCESS)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // not every hierarchy of v1 has the cgroup
			return fmt.Errorf("host: change %s: %w", dir, explain(err))
		}
	}
	return nil
}

// allDirs returns the directories in which the cgroup may exist.
func (t *Tree) allDirs(name cgroups.Name) []string {
	var dirs []string
	for _, controller := range t.order {
		if dir := t.dir(controller, name); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	if t.driver != cgroups.Systemd && t.version == 1 && oci.IsCgroup2HybridMode() {
		// Only OCI runtimes create cgroups there, for containers, and leave their
		// ancestors behind.
		dirs = append(dirs, filepath.Join(hybrid, t.root, name.Path(t.driver)))
	}
	return dirs
}

// processesIn returns the processes in and below the directories, sorted.
func processesIn(dirs []string) ([]int, error) {
	var pids []int
	for _, dir := range dirs {
		found, err := oci.GetAllPids(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENODEV) {
			return nil, err
		}
		pids = append(pids, found...)
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}
