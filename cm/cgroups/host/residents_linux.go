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

// Inside reports whether the process is in the cgroup at that path, as the driver spells
// it, or below it; with v1 in each of its trees that has the process at all.
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

// Strays returns the processes right in the root of all cgroups, without the first one
// and the kernel's, which have no program.
func (t *Tree) Strays() ([]int, error) {
	pids, err := oci.GetPids(t.dir(t.lead(), nil))
	if err != nil {
		return nil, fmt.Errorf("host: processes of the root: %w", explain(err))
	}
	var out []int
	for _, pid := range pids {
		if pid <= 1 { // 0: of another namespace of PIDs
			continue
		}
		if _, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe")); errors.Is(err, fs.ErrNotExist) {
			continue // or it has ended
		}
		out = append(out, pid)
	}
	return out, nil
}

// Move puts processes into the cgroup, which is made if it is not there. Those that have
// ended are no error. Systemd has no processes in slices: it gets a scope there, named
// kubeparts- and as the slice.
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
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // not all of v1's trees have cgroups of ours
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
