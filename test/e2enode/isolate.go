package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A lane runs in namespaces of its own for mounts, processes, the network and cgroups: the suite,
// the kubelet and containerd have directories, ports and cgroups of a machine in their code. What
// a lane leaves behind ends with it, and several run at the same time.
var machineDirs = []string{"/var/lib/kubelet", "/var/log/pods", "/var/log/containers", "/run"}

// isolatedVariable is set in the process of a lane.
const isolatedVariable = "E2ENODE_ISOLATED"

func isolated() bool { return os.Getenv(isolatedVariable) != "" }

// enter is the script that prepares the namespaces: mounts propagate within the lane, as pods may
// require, and not out of it; the cgroup of the lane is the root of each hierarchy; a pair of
// links, of which nothing is on the other side, has the address and the route by which programs
// find the address of their node.
const enter = `set -e
mount --make-rshared /
hierarchies=$(awk '$3 == "cgroup" || $3 == "cgroup2" { print $3 " " $2 " " $4 }' /proc/mounts)
mount -t sysfs sysfs /sys
[ "${hierarchies#cgroup2 /sys/fs/cgroup }" != "$hierarchies" ] || mount -t tmpfs -o mode=755 cgroups /sys/fs/cgroup
echo "$hierarchies" | while read -r type dir options; do
	mkdir -p "$dir"
	case $type in
	cgroup2) mount -t cgroup2 cgroup2 "$dir" ;;
	*) mount -t cgroup -o "$(echo "$options" | sed 's/^rw,//; s/relatime,//; s/nosuid,//; s/nodev,//; s/noexec,//')" cgroup "$dir" ;;
	esac
done
ip link set lo up
ip link add node type veth peer name outside
ip address add 192.0.2.2/24 dev node
ip link set outside up
ip link set node up
ip route add default via 192.0.2.1
echo 1 >/proc/sys/net/ipv4/ip_forward
"$0" "$@"
exit $?` // not exec: as process 1 the shell reaps the orphans of the lane

// isolate runs this program in a lane with these arguments, and returns its exit code. Temporary files are
// below dir, whose path must be short because of the paths of sockets.
func isolate(ctx context.Context, dir string, args []string, out io.Writer) (code int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cgroups, err := makeCgroups(fmt.Sprintf("e2enode-%d-%s", os.Getpid(), filepath.Base(dir)))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, removeCgroups(cgroups)) }()
	// The shell enters the cgroups before they become the roots of a namespace.
	var join strings.Builder
	for _, dir := range cgroups {
		fmt.Fprintf(&join, "echo $$ >%s/cgroup.procs || exit\n", dir)
	}
	namespaces := "--mount --net --pid"
	if len(cgroups) > 0 {
		namespaces += " --cgroup"
	}
	fmt.Fprintf(&join, `exec unshare %s --fork --kill-child --mount-proc --propagation private sh -c "$ENTER" "$0" "$@"`, namespaces)
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", join.String(), self}, args...)...)
	cmd.Env = append(os.Environ(), isolatedVariable+"=1", "TMPDIR="+dir, "ENTER="+enter)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = ownGroup()
	cmd.Cancel = func() error { return endGroup(cmd.Process.Pid) } // unshare does not pass signals on
	cmd.WaitDelay = 5 * time.Minute                                // it removes the pods
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() >= 0 {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// makeCgroups makes a cgroup in each hierarchy of cgroup v1, and returns their directories. In v2 it makes
// none: the processes of a lane would be in the way of cgroups below.
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

// ownMachineDirs mounts directories below dir on those of the machine.
func ownMachineDirs(dir string) error {
	for _, path := range machineDirs {
		own := filepath.Join(dir, "machine", path)
		if err := errors.Join(os.MkdirAll(own, 0o755), os.MkdirAll(path, 0o755)); err != nil {
			return err
		}
		// Otherwise what is mounted in the one would appear in the other as well.
		for _, args := range [][]string{{"--bind", own, path}, {"--make-private", path}, {"--make-shared", path}} {
			if out, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
				return fmt.Errorf("mount %s: %w: %s", path, err, out)
			}
		}
	}
	return os.MkdirAll("/run/containerd", 0o755)
}

// removeMachineDirs unmounts them, and what is mounted in them.
func removeMachineDirs() error {
	for _, path := range machineDirs {
		if out, err := exec.Command("umount", "--recursive", "--lazy", path).CombinedOutput(); err != nil {
			return fmt.Errorf("umount %s: %w: %s", path, err, out)
		}
	}
	return nil
}
