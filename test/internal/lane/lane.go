// Package lane runs a program in namespaces of its own: for mounts, processes, the network and, on request,
// cgroups. A kubelet and what is beside it have directories, ports and cgroups of a machine in their code. What a
// lane leaves behind ends with it, and several run at the same time.
package lane

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

// variable is set in the process of a lane.
const variable = "KUBEPARTS_LANE"

// Inside reports whether this process runs in a lane.
func Inside() bool { return os.Getenv(variable) != "" }

// A Config describes a lane. All fields but Cgroups are required.
type Config struct {
	// Name is the first part of the names of cgroups.
	Name string

	// Dir is the directory of temporary files. Its path must be short because of the paths of sockets.
	Dir string

	// Args are the arguments of this program in the lane, and Out receives its output.
	Args []string
	Out  io.Writer

	// Cgroups makes a cgroup in each hierarchy of cgroup v1, which is the root of the hierarchy in the lane.
	Cgroups bool
}

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

// Run runs this program in a lane, and returns its exit code.
func Run(ctx context.Context, c Config) (code int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	var cgroups []string
	if c.Cgroups {
		if cgroups, err = makeCgroups(fmt.Sprintf("%s-%d-%s", c.Name, os.Getpid(), filepath.Base(c.Dir))); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, removeCgroups(cgroups)) }()
	}
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
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", join.String(), self}, c.Args...)...)
	cmd.Env = append(os.Environ(), variable+"=1", "TMPDIR="+c.Dir, "ENTER="+enter)
	cmd.Stdout, cmd.Stderr = c.Out, c.Out
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

// OwnDirs mounts directories below dir on those of the machine. It must be called in a lane.
func OwnDirs(dir string, paths ...string) error {
	for _, path := range paths {
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
	return nil
}

// RemoveDirs unmounts them, and what is mounted in them.
func RemoveDirs(paths ...string) error {
	for _, path := range paths {
		if out, err := exec.Command("umount", "--recursive", "--lazy", path).CombinedOutput(); err != nil {
			return fmt.Errorf("umount %s: %w: %s", path, err, out)
		}
	}
	return nil
}
