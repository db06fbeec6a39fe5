package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	oci "github.com/opencontainers/cgroups"

	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// passes is the number of times that the processes of a cgroup are killed before Remove
// returns an error.
const passes = 5

// Remove kills the processes in the cgroup and removes it and its descendants. It is not
// an error if the cgroup does not exist. If processes survive, Remove returns an error
// and the cgroup remains.
func (t *Tree) Remove(ctx context.Context, name cgroups.Name) error {
	if err := name.Check(); err != nil {
		return err
	}
	if len(name) == 0 {
		return errors.New("host: the root of all cgroups is not removed")
	}
	dirs := t.allDirs(name)
	if t.driver == cgroups.Systemd {
		return t.removeUnit(ctx, name, dirs)
	}
	// Usually all are empty, because the containers have been removed before.
	dirs = slices.DeleteFunc(dirs, func(dir string) bool {
		err := syscall.Rmdir(dir)
		return err == nil || errors.Is(err, syscall.ENOENT)
	})
	if len(dirs) == 0 {
		return nil
	}
	if err := t.kill(ctx, name, dirs); err != nil {
		return fmt.Errorf("host: remove %s: %w", name, explain(err))
	}
	var errs []error
	for _, dir := range dirs {
		if err := oci.RemovePath(dir); err != nil {
			errs = append(errs, explain(err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("host: remove %s: %w", name, err)
	}
	return nil
}

// removeUnit removes a slice. It must be stopped: systemd keeps a unit whose directory is
// removed, one for each pod.
func (t *Tree) removeUnit(ctx context.Context, name cgroups.Name, dirs []string) error {
	if err := t.kill(ctx, name, dirs); err != nil {
		return fmt.Errorf("host: remove %s: %w", name, explain(err))
	}
	m, err := t.manager(name, &oci.Resources{SkipDevices: true, SkipFreezeOnSet: true})
	if err == nil {
		err = m.Destroy()
	}
	if err != nil {
		return fmt.Errorf("host: remove %s: %w", name, explain(err))
	}
	return nil
}

// kill kills all processes below dirs and waits until they have terminated.
func (t *Tree) kill(ctx context.Context, name cgroups.Name, dirs []string) error {
	wait := 5 * time.Millisecond
	var last []int
	logged := map[int]bool{}
	for pass := 0; ; pass++ {
		var err error
		if last, err = processesIn(dirs); err != nil || len(last) == 0 {
			return err
		}
		if slices.Contains(last, os.Getpid()) {
			return fmt.Errorf("this process (%d) is in it", os.Getpid())
		}
		if pass == passes {
			return fmt.Errorf("processes %v did not end when they were killed %d times", last, passes)
		}
		t.logKills(name, last, logged)
		if t.version != 2 || os.WriteFile(filepath.Join(dirs[0], "cgroup.kill"), []byte("1"), 0) != nil {
			for _, pid := range last {
				if pid > 1 { // 0 is a process of another PID namespace
					_ = syscall.Kill(pid, syscall.SIGKILL) // it may have terminated
				}
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		wait *= 3
	}
}

// logKills logs the processes of pids that are not in logged, and adds them.
func (t *Tree) logKills(name cgroups.Name, pids []int, logged map[int]bool) {
	for _, pid := range pids {
		if !logged[pid] {
			logged[pid] = true
			t.log.Warn("Killing a leftover process of a removed cgroup", "cgroup", name.Path(t.driver), "pid", pid, "command", commandOf(pid))
		}
	}
}

// commandOf returns the name of a process; "" if it has terminated.
func commandOf(pid int) string {
	name, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
	return strings.TrimSpace(string(name))
}
