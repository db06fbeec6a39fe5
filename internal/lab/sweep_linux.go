package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// suspend stops p and waits until every thread has stopped: after the signal, a running
// thread may still respond to a call.
func suspend(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		switch still, err := stopped(p.Pid); {
		case err != nil || still:
			return err
		case time.Since(begun) > patience:
			return fmt.Errorf("process %d does not stop", p.Pid)
		}
	}
}

// stopped reports whether every thread of a process is stopped.
func stopped(pid int) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return false, err
	}
	for _, path := range threads {
		stat, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the thread has exited
		}
		if err != nil {
			return false, err
		}
		// "pid (name) state …"; the name may contain any character.
		_, after, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
		if !strings.HasPrefix(after, "T") && !strings.HasPrefix(after, "t") {
			return false, nil
		}
	}
	return true, nil
}
func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// sweepDead sweeps the directories below tmp whose test processes have exited: a test
// binary that is killed, for example by its timeout, runs no cleanup.
func sweepDead(tmp string) error {
	dirs, err := filepath.Glob(filepath.Join(tmp, dirPrefix+"*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), dirPrefix), "-")
		if pid, err := strconv.Atoi(owner); err == nil && !alive(pid) {
			errs = append(errs, sweep(dir))
		}
	}
	return errors.Join(errs...)
}

func alive(pid int) bool {
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// sweep removes a daemon's directory and all its processes, mounts and network resources.
// It works without a running daemon and may be called twice. It continues after an error
// and returns all errors.
func sweep(dir string) error {
	errs := []error{endProcesses(dir)}
	bridge, _ := os.ReadFile(layout{dir: dir}.bridgeFile())
	if name := string(bridge); name != "" {
		errs = append(errs, removeNetwork(name))
	}
	errs = append(errs, removeTraces(layout{dir: dir}), removeLoopbacks(dir))
	mounted, err := mounts(dir)
	errs = append(errs, err)
	for _, point := range slices.Backward(mounted) {
		if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil {
			errs = append(errs, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	return errors.Join(append(errs, os.RemoveAll(dir))...)
}

// endProcesses kills the processes of the daemon until there are none: a killed process
// may have forked since they were listed.
func endProcesses(dir string) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(90 * time.Second); ; <-tick.C {
		pids, err := processes(dir)
		if err != nil || len(pids) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v do not die", pids)
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("kill %d: %w", pid, err)
			}
		}
	}
}

// processes returns the processes of the daemon in dir. The daemon, its shims and runc
// have the directory in their arguments; the processes of containers have their root file
// system in it.
func processes(dir string) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// Empty for a zombie, or a process that exits meanwhile.
		args, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if strings.Contains(string(args), dir+"/") || rootIsIn(filepath.Join("/proc", e.Name(), "mountinfo"), dir) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// rootIsIn reports whether the root file system of the process is from dir: an overlay has
// its directories in the options, a bind mount in the root field. Other mounts are
// ignored, because every process of the host has them.
func rootIsIn(mountinfo, dir string) bool {
	data, _ := os.ReadFile(mountinfo)
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == "/" && strings.Contains(line, dir+"/") {
			return true
		}
	}
	return false
}

// mounts returns the mount points below dir, parents first.
func mounts(dir string) ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var points []string
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			points = append(points, fields[4])
		}
	}
	return points, nil
}

// removeNetwork deletes the bridge, and the cached results and host port rules of the CNI
// plugins for the network.
func removeNetwork(name string) error {
	var errs []error
	if _, err := os.Stat("/sys/class/net/" + name); err == nil {
		if out, err := exec.Command("ip", "link", "delete", name).CombinedOutput(); err != nil {
			errs = append(errs, fmt.Errorf("ip link delete %s: %w: %s", name, err, out))
		}
	}
	cached, _ := filepath.Glob("/var/lib/cni/results/" + name + "-*")
	for _, file := range cached {
		errs = append(errs, os.Remove(file))
	}
	return errors.Join(append(errs, removeHostPorts(name))...)
}

// removeLoopbacks deletes the cached results of the CNI plugin for the loopback links of sandboxes whose network
// namespaces are in dir.
func removeLoopbacks(dir string) error {
	var errs []error
	for _, file := range loopbacks(dir) {
		if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) { // a plugin may remove it as well
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// loopbacks returns the files of these results.
func loopbacks(dir string) (files []string) {
	cached, _ := filepath.Glob("/var/lib/cni/results/cni-loopback-*")
	for _, file := range cached {
		if data, _ := os.ReadFile(file); strings.Contains(string(data), dir+"/") {
			files = append(files, file)
		}
	}
	return files
}

var hostPortChain = regexp.MustCompile(`CNI-DN-[0-9a-f]+`)

// removeHostPorts deletes the rules that portmap created for one network; their comments
// contain its name. There are none if the daemon removed its pods.
func removeHostPorts(network string) error {
	const parent = "CNI-HOSTPORT-DNAT"
	out, err := exec.Command("iptables", "-w", "-t", "nat", "-n", "--line-numbers", "-L", parent).Output()
	if err != nil {
		return nil // no iptables, or no host port was ever used
	}
	for _, line := range slices.Backward(strings.Split(string(out), "\n")) {
		if !strings.Contains(line, fmt.Sprintf("name: %q", network)) {
			continue
		}
		number, _, _ := strings.Cut(line, " ")
		chain := hostPortChain.FindString(line)
		for _, args := range [][]string{{"-D", parent, number}, {"-F", chain}, {"-X", chain}} {
			if out, err := exec.Command("iptables", append([]string{"-w", "-t", "nat"}, args...)...).CombinedOutput(); err != nil {
				return fmt.Errorf("iptables %v: %w: %s", args, err, out)
			}
		}
	}
	return nil
}

var shimSocket = regexp.MustCompile(`unix://(/run/containerd/s/[0-9a-f]+)`)

// removeTraces removes the files of killed shims outside the directory: their sockets,
// which have a fixed path, and the cgroups of the containers.
func removeTraces(l layout) error {
	bundles, _ := filepath.Glob(filepath.Join(l.state(), "io.containerd.runtime.v2.task/k8s.io/*"))
	if len(bundles) == 0 {
		return nil
	}
	var ids []string
	for _, bundle := range bundles {
		ids = append(ids, filepath.Base(bundle))
		for _, name := range []string{"address", "bootstrap.json"} {
			data, _ := os.ReadFile(filepath.Join(bundle, name))
			if found := shimSocket.FindSubmatch(data); found != nil {
				os.Remove(string(found[1])) // containers of a sandbox share it
			}
		}
	}
	var errs []error
	walk := filepath.WalkDir("/sys/fs/cgroup", func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !e.IsDir() || !slices.Contains(ids, e.Name()):
			return nil
		}
		errs = append(errs, removeCgroup(path))
		return fs.SkipDir
	})
	return errors.Join(append(errs, walk)...)
}

// removeCgroup removes a cgroup. It retries until the kernel has released the processes
// that were killed before.
func removeCgroup(path string) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(90 * time.Second); ; <-tick.C {
		err := syscall.Rmdir(path)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline) {
			return fmt.Errorf("remove cgroup %s: %w", path, err)
		}
	}
}
