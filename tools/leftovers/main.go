// Leftovers runs a command and reports what the command leaves on the machine: processes,
// mounts, cgroups, network interfaces and namespaces, and files where programs put temporary
// and state files. The exit code is 3 if something is left, otherwise the command's.
//
//	leftovers bash .ci/run unit
//
// Processes are found by descent: leftovers is the subreaper of the command, so that a process
// whose parent ended is still below it. What is left of them is killed. Everything else is
// compared with the state before the command, so it includes what other programs of the
// machine created in the meantime, except the lines that KUBEPARTS_LEFTOVERS_EXCEPT, a regular
// expression, matches.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// somethingLeft is the exit code if something is left.
const somethingLeft = 3

// patience is how long processes may take to end after the command.
const patience = 10 * time.Second

func main() {
	if len(os.Args) < 2 || strings.HasPrefix(os.Args[1], "-") {
		fmt.Fprintln(os.Stderr, "usage: leftovers COMMAND [ARGUMENT…]\n\nRuns the command and reports what it leaves on the machine.")
		os.Exit(2)
	}
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "leftovers:", err)
		os.Exit(2)
	}
	os.Exit(code)
}

// run runs a command and returns the exit code of leftovers.
func run(command []string) (int, error) {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return 0, err
	}
	except, err := exceptions(os.Getenv("KUBEPARTS_LEFTOVERS_EXCEPT"))
	if err != nil {
		return 0, err
	}
	if err := becomeSubreaper(); err != nil {
		return 0, fmt.Errorf("become a subreaper: %w", err)
	}
	before := machine()
	process, err := os.StartProcess(path, command, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return 0, err
	}
	forwardSignals(process)
	code, err := reapUntil(process.Pid)
	if err != nil {
		return 0, err
	}
	left := slices.Concat(endProcesses(), slices.DeleteFunc(added(before, machine()), except))
	for _, what := range left {
		fmt.Println("left behind:", what)
	}
	if len(left) > 0 {
		return somethingLeft, nil
	}
	return code, nil
}

// exceptions returns whether an expression matches a line; an empty one matches none.
func exceptions(expression string) (func(line string) bool, error) {
	if expression == "" {
		return func(string) bool { return false }, nil
	}
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("KUBEPARTS_LEFTOVERS_EXCEPT: %w", err)
	}
	return re.MatchString, nil
}

// forwardSignals passes the signals that end leftovers to the command.
func forwardSignals(process *os.Process) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for s := range signals {
			_ = process.Signal(s) // fails if it has ended
		}
	}()
}

// reapUntil reaps children, of the command or orphaned by it, until the command has ended, and
// returns its exit code, which is 128 more than the signal that killed it, as in a shell.
func reapUntil(command int) (int, error) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return 0, fmt.Errorf("wait for the command: %w", err)
		case pid == command && status.Exited():
			return status.ExitStatus(), nil
		case pid == command && status.Signaled():
			return 128 + int(status.Signal()), nil
		}
	}
}

// endProcesses waits for the remaining descendants, kills those that do not end, and returns
// them.
func endProcesses() []string {
	for deadline := time.Now().Add(patience); len(descendants()) > 0 && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
		reap()
	}
	var left []string
	for {
		remaining := descendants()
		if len(remaining) == 0 {
			return left
		}
		for _, p := range remaining {
			left = append(left, p.String())
			_ = syscall.Kill(p.pid, syscall.SIGKILL) // fails if it has ended
		}
		time.Sleep(50 * time.Millisecond)
		reap()
	}
}

// reap reaps the children that have ended.
func reap() {
	for {
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 && err != syscall.EINTR {
			return
		}
	}
}

// stateDirs are the directories in which the programs that tests start keep files; the entries
// of each are compared, not the files below them.
var stateDirs = []string{
	"/run", "/run/netns", "/run/containerd", "/var/lib", "/var/lib/cni", "/var/lib/cni/networks", "/var/lib/containerd", "/var/lib/kubelet",
	"/var/log/pods", "/var/log/containers", "/etc/cni/net.d",
}

// sharedDirs are directories that containerd, mount and the CNI plugins make once on each machine, and
// leave. They are state only with a file in them.
var sharedDirs = []string{
	"/run/containerd", "/run/containerd/fifo", "/run/containerd/runc", "/run/containerd/s", "/run/mount", "/var/lib/cni", "/var/lib/cni/results",
}

// machine returns what is compared, a line for each thing.
func machine() map[string]bool {
	state := map[string]bool{}
	for _, dir := range append([]string{os.TempDir(), "/sys/class/net"}, stateDirs...) {
		entries, _ := os.ReadDir(dir) // a directory that does not exist is empty
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			switch {
			case strings.HasPrefix(e.Name(), "go-build"): // of go commands that run beside this one
			case slices.Contains(sharedDirs, path) && !hasFiles(path):
			default:
				state["file "+path] = true
			}
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			state["mount "+fields[4]] = true
		}
	}
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			state["cgroup "+path] = true
		}
		return nil // a cgroup may disappear while it is read
	})
	return state
}

// hasFiles reports whether a path is not a directory, or one with a file at any depth.
func hasFiles(path string) bool {
	found := false
	_ = filepath.WalkDir(path, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // what cannot be read has disappeared
		}
		found = true
		return filepath.SkipAll
	})
	return found
}

// added returns what is in after only, sorted.
func added(before, after map[string]bool) []string {
	var names []string
	for name := range after {
		if !before[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
