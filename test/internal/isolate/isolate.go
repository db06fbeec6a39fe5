// Package isolate runs this program again in namespaces of its own, with cgroups and directories of the machine of
// its own: the suites of Kubernetes, kubelets and containerd have paths, ports and cgroups of a machine in their
// code. What a run leaves behind ends with it, and several run at the same time.
package isolate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/test/internal/cgroupdir"
)

// variable is set in the isolated process.
const variable = "KUBEPARTS_ISOLATED"

// Isolated reports whether this process runs in namespaces of its own.
func Isolated() bool { return os.Getenv(variable) != "" }

// enter is the script that prepares the namespaces: mounts propagate within them, as pods may
// require, and not out of them; the cgroup of the run is the root of each hierarchy; a pair of
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
exit $?` // not exec: as process 1 the shell reaps orphans

// Config is how the program runs.
type Config struct {
	Args []string
	Out  io.Writer // of stdout and stderr

	// Dir is the directory of temporary files. Its path must be short because of the paths of sockets. If
	// empty, only the mounts are isolated, and temporary files are in the usual directory.
	Dir string
}

// Run runs this program and returns its exit code. When ctx is done, the program is interrupted, and has five
// minutes to remove its pods.
func Run(ctx context.Context, cfg Config) (code int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	script := `exec unshare --mount --propagation private "$0" "$@"`
	env := append(os.Environ(), variable+"=1")
	if cfg.Dir != "" {
		cgroups, makeErr := makeCgroups(filepath.Base(cfg.Dir))
		defer func() { err = errors.Join(err, cgroupdir.Remove(cgroups)) }()
		if makeErr != nil {
			return 0, makeErr
		}
		script = inNamespaces(cgroups)
		env = append(env, "TMPDIR="+cfg.Dir, "ENTER="+enter)
	}
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", script, self}, cfg.Args...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, cfg.Out, cfg.Out
	cmd.SysProcAttr = ownGroup()
	cmd.Cancel = func() error { return endGroup(cmd.Process.Pid) } // unshare does not pass signals on
	cmd.WaitDelay = 5 * time.Minute
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() >= 0 {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// makeCgroups makes a cgroup in each hierarchy of cgroup v1, and returns their directories,
// also with an error. In v2 it makes none: the processes would be in the way of cgroups below.
func makeCgroups(name string) ([]string, error) {
	if cgroupdir.V2() {
		return nil, nil
	}
	dirs, err := cgroupdir.Of(fmt.Sprintf("kubeparts-%d-%s", os.Getpid(), name))
	if err != nil {
		return nil, err
	}
	return dirs, cgroupdir.Make(dirs)
}

// inNamespaces returns a script that runs a program in new namespaces and these cgroups, which the shell enters
// before they become the roots of a namespace.
func inNamespaces(cgroups []string) string {
	var script strings.Builder
	for _, dir := range cgroups {
		fmt.Fprintf(&script, "echo $$ >%s/cgroup.procs || exit\n", dir)
	}
	namespaces := "--mount --net --pid --uts --ipc"
	if len(cgroups) > 0 {
		namespaces += " --cgroup"
	}
	fmt.Fprintf(&script, `exec unshare %s --fork --kill-child --mount-proc --propagation private sh -c "$ENTER" "$0" "$@"`, namespaces)
	return script.String()
}
