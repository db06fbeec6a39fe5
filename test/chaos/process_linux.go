package chaos

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// processes returns the processes of the run's containers, without zombies.
func processes(dir string) []process {
	var found []process
	for _, pid := range pids() {
		at := filepath.Join("/proc", strconv.Itoa(pid))
		data, err := os.ReadFile(filepath.Join(at, "environ"))
		if err != nil || !strings.Contains(string(data), dir) {
			continue // terminated, or not of this run
		}
		env := map[string]string{}
		for kv := range strings.SplitSeq(string(data), "\x00") {
			if k, v, ok := strings.Cut(kv, "="); ok {
				env[k] = v
			}
		}
		if env[chaosVar] != dir {
			continue
		}
		p := process{pid: pid, uid: env[uidVar], container: env[containerVar]}
		if p.instance, err = os.Readlink(filepath.Join(at, "ns/pid")); err != nil {
			continue
		}
		if p.start = started(pid); p.start != "" {
			found = append(found, p)
		}
	}
	return found
}

// pids returns the IDs of all processes.
func pids() []int {
	var all []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// started returns the start time of a process, "" if it has terminated or is a zombie.
func started(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The name, in parentheses, may contain any character.
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19]
}

// shims returns the process of each shim of a daemon by its sandbox.
func shims(daemonDir string) map[string]int {
	found := map[string]int{}
	for _, pid := range pids() {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || !strings.Contains(string(data), daemonDir) {
			continue
		}
		args := strings.Split(string(data), "\x00")
		if filepath.Base(args[0]) != "containerd-shim-runc-v2" {
			continue
		}
		for i, arg := range args[:len(args)-1] {
			if arg == "-id" {
				found[args[i+1]] = pid
			}
		}
	}
	return found
}

func send(pid int, s syscall.Signal) error {
	if err := syscall.Kill(pid, s); err != nil {
		return fmt.Errorf("%v for process %d: %w", s, pid, err)
	}
	return nil
}

func killed(pid int) error  { return send(pid, syscall.SIGKILL) }
func stopped(pid int) error { return send(pid, syscall.SIGSTOP) }
func resumed(pid int) error { return send(pid, syscall.SIGCONT) }

// ignoreGone returns nil for an error that the process does not exist.
func ignoreGone(err error) error {
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// smallDisk mounts a file system in memory on dir.
func smallDisk(dir string, mib int) error {
	return syscall.Mount("chaos", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=755", mib))
}

// unmountAll unmounts dir and all mounts below it.
func unmountAll(dir string) error {
	var out []byte
	var err error
	for range 100 { // mounts of other programs may be removed with a delay
		if out, err = exec.Command("umount", "--recursive", dir).CombinedOutput(); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("unmount %s: %w: %s", dir, err, out)
}

// mounted returns all mount points of the machine.
func mounted() ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	var points []string
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			points = append(points, fields[4])
		}
	}
	return points, err
}

// groupsNamed returns the cgroups below root with that name, in all hierarchies.
func groupsNamed(root string, is func(name string) bool) []groupDir {
	var found []groupDir
	for _, top := range groupRoots(root) {
		_ = filepath.WalkDir(top, func(path string, e os.DirEntry, err error) error {
			if err == nil && e.IsDir() && is(e.Name()) {
				found = append(found, groupDir(path))
			}
			return nil // removed meanwhile
		})
	}
	return found
}

// groupRoots returns the directories of a cgroup, one for each hierarchy.
func groupRoots(root string) []string {
	one := filepath.Join("/sys/fs/cgroup", root) // v2
	all, _ := filepath.Glob(filepath.Join("/sys/fs/cgroup", "*", root))
	if _, err := os.Stat(one); err == nil {
		all = append(all, one)
	}
	return all
}

// remove moves the processes of a cgroup and of those below it to its parent, and removes them.
func (g groupDir) remove() error {
	parent := filepath.Join(filepath.Dir(string(g)), "cgroup.procs")
	var dirs []string
	err := filepath.WalkDir(string(g), func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		procs, err := os.ReadFile(filepath.Join(dirs[i], "cgroup.procs"))
		if err != nil {
			return err
		}
		for pid := range strings.FieldsSeq(string(procs)) {
			_ = os.WriteFile(parent, []byte(pid), 0) // it may have terminated
		}
		for range 40 {
			if err = os.Remove(dirs[i]); err == nil {
				break
			}
			time.Sleep(25 * time.Millisecond)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeGroups removes a cgroup without processes, and all below it.
func removeGroups(root string) error {
	var errs []error
	for _, dir := range groupRoots(root) {
		errs = append(errs, groupDir(dir).remove())
	}
	return errors.Join(errs...)
}
