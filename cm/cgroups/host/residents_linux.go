package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	oci "github.com/opencontainers/cgroups"

	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// Inside reports whether the process is in the cgroup at the path, in the notation of the
// driver, or in a descendant; with v1 in every hierarchy that contains the process.
func (t *Tree) Inside(path string, pid int) (bool, error) {
	at, err := oci.ParseCgroupFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return false, fmt.Errorf("host: cgroup of process %d: %w", pid, err)
	}
	want := filepath.Join(t.root, path)
	for _, controller := range t.order {
		has, ok := at[ociName(controller)]
		if ok && has != want && !strings.HasPrefix(has, strings.TrimSuffix(want, "/")+"/") {
			return false, nil
		}
	}
	return true, nil
}

// Strays returns the processes directly in the root cgroup except for PID 1 and kernel
// threads, which have no executable.
func (t *Tree) Strays() ([]int, error) {
	pids, err := oci.GetPids(t.dir(t.lead(), nil))
	if err != nil {
		return nil, fmt.Errorf("host: processes of the root: %w", explain(err))
	}
	var out []int
	for _, pid := range pids {
		if pid <= 1 { // 0 is a process of another PID namespace
			continue
		}
		if _, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe")); errors.Is(err, fs.ErrNotExist) {
			continue // or it has terminated
		}
		out = append(out, pid)
	}
	return out, nil
}

// Move moves processes into the cgroup, which is created if necessary. Processes that
// have terminated are ignored. With systemd, slices contain no processes: they are moved
// into a scope in the slice, named kubeparts- and the name of the slice.
func (t *Tree) Move(ctx context.Context, name cgroups.Name, pids ...int) error {
	if err := name.Check(); err != nil {
		return err
	}
	if !t.exists(name) {
		if err := t.Apply(ctx, name, cgroups.Resources{}); err != nil {
			return err
		}
	}
	into := t.moveInto
	if t.driver == cgroups.Systemd {
		into = t.moveIntoScope
	}
	for _, pid := range pids {
		if err := into(name, pid); err != nil && syscall.Kill(pid, 0) != syscall.ESRCH {
			return fmt.Errorf("host: move process %d into %s: %w", pid, name, explain(err))
		}
	}
	return nil
}

func (t *Tree) moveInto(name cgroups.Name, pid int) error {
	for _, dir := range t.Dirs(name) {
		err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // not every hierarchy of v1 has the cgroup
			return err
		}
	}
	return nil
}

func (t *Tree) moveIntoScope(name cgroups.Name, pid int) error {
	cg := &oci.Cgroup{
		Systemd: true, ScopePrefix: "kubeparts", Name: strings.TrimSuffix(name.Slice(), ".slice"), Parent: name.Slice(),
		Resources: &oci.Resources{SkipDevices: true, SkipFreezeOnSet: true},
	}
	m, err := t.scope(cg)
	if err != nil {
		return err
	}
	if m.Exists() {
		return m.AddPid("", pid)
	}
	return m.Apply(pid)
}
