package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/internal/dirlock"
	"github.com/kubeparts/kubeparts/internal/untrusted"
)

// claim makes sure that nobody else keeps the pods of this runtime, or the files of this
// root: what another agent runs would be leftovers to this one, and be removed. The locks
// are the agent's until release is called, or it ends.
func (a *assembly) claim(proc string) (release func(), err error) {
	if err := besideKubelets(claimsOf(&a.opts), proc); err != nil {
		return nil, err
	}
	var held []*dirlock.Lock
	release = func() {
		for _, l := range held {
			_ = l.Release() // the kernel does it, if not
		}
	}
	take := func(path, flag, value string) error {
		lock, err := dirlock.Take(path)
		switch {
		case err == nil:
			held = append(held, lock)
		case flag == "runtime" && !errors.Is(err, dirlock.ErrHeld), errors.Is(err, errors.ErrUnsupported):
			a.logger.Debug("it is not known whether another agent uses it", "path", path, "err", err)
		default:
			release()
			return fmt.Errorf("--%s=%s can't be used; choose another, or end the agent that has it: %w", flag, value, err)
		}
		return nil
	}
	root := a.opts.root
	if err := os.MkdirAll(root, 0o711); err != nil {
		return nil, fmt.Errorf("--root=%s can't be used; choose another: %w", root, err)
	}
	if err := take(filepath.Join(root, "agent.lock"), "root", root); err != nil {
		return nil, err
	}
	if socket := socketOf(a.opts.runtime); socket != "" {
		// Two agents with roots of their own still have the same pods.
		err = take(socket+".kubeparts-agent.lock", "runtime", a.opts.runtime)
	}
	return release, err
}

// claims are what an agent or a kubelet has for its own, by the flag that names it: paths
// without links.
type claims map[string]string

func claimsOf(o *options) claims {
	c := claims{"root": resolved(o.root), "pod-logs-dir": resolved(o.logs)}
	if socket := socketOf(o.runtime); socket != "" {
		c["runtime"] = socket
		if *o.kubelet.CgroupsPerQOS && os.Geteuid() == 0 {
			c["cgroup-root"] = filepath.Join("/", o.kubelet.CgroupRoot)
		}
	}
	return c
}

// socketOf returns the path of a runtime's socket, without links; "" for plain processes.
func socketOf(runtime string) string {
	path, ok := strings.CutPrefix(runtime, "unix://")
	if !ok {
		return ""
	}
	return resolved(path)
}

func resolved(path string) string {
	// Its directory may be a link also before the socket is there.
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return filepath.Clean(path)
	}
	path = filepath.Join(dir, filepath.Base(path))
	if whole, err := filepath.EvalSymlinks(path); err == nil {
		return whole
	}
	return path
}

// besideKubelets refuses to start beside a kubelet of this machine that has one of the
// claims for its own. A kubelet in another mount namespace, as in the nodes of kind, has
// other files. Where /proc cannot be read, no kubelet is found.
func besideKubelets(mine claims, proc string) error {
	here, err := os.Readlink(filepath.Join(proc, "self", "ns", "mnt"))
	if err != nil {
		return nil
	}
	names, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "comm"))
	for _, comm := range names {
		dir := filepath.Dir(comm)
		name, err := untrusted.ReadFile(comm, maxProcFile)
		if err != nil || strings.TrimSpace(string(name)) != "kubelet" {
			continue
		}
		if there, err := os.Readlink(filepath.Join(dir, "ns", "mnt")); err != nil || there != here {
			continue
		}
		if !startedByAdmin(dir) {
			continue
		}
		line, err := untrusted.ReadFile(filepath.Join(dir, "cmdline"), maxCommandLine)
		if err != nil || len(line) == 0 {
			continue // it has just ended
		}
		theirs := kubeletClaims(strings.Split(strings.TrimRight(string(line), "\x00"), "\x00"))
		var both []string
		for _, flag := range slices.Sorted(maps.Keys(mine)) {
			if theirs[flag] == mine[flag] {
				both = append(both, "--"+flag+"="+mine[flag])
			}
		}
		if len(both) > 0 {
			return fmt.Errorf("a kubelet runs here (process %s) and has the same %s: its pods would be taken for leftovers, and be removed; "+
				"stop it first (systemctl stop kubelet), or give the agent its own", filepath.Base(dir), strings.Join(both, ", "))
		}
	}
	return nil
}

const (
	maxProcFile    = 64 << 10 // bytes of a small file in /proc
	maxCommandLine = 1 << 20  // bytes of a kubelet's command line
)

// startedByAdmin reports whether root, or the agent's own user, started a process, given
// its directory in /proc. Another user can call a program kubelet and choose its command
// line, and the memory that it is read from. A set-user-ID program runs as root with the
// command line of any user.
func startedByAdmin(dir string) bool {
	status, err := untrusted.ReadFile(filepath.Join(dir, "status"), maxProcFile)
	if err != nil {
		return false
	}
	if program, err := os.Stat(filepath.Join(dir, "exe")); err == nil && program.Mode()&os.ModeSetuid != 0 {
		return false
	}
	uids := uidsIn(string(status))
	return len(uids) > 0 && !slices.ContainsFunc(uids, func(uid int) bool { return uid != 0 && uid != os.Geteuid() })
}

// uidsIn returns the user IDs in a process's status, or none if it has none: real,
// effective, saved, and that of the file system.
func uidsIn(status string) []int {
	for line := range strings.Lines(status) {
		rest, ok := strings.CutPrefix(line, "Uid:")
		if !ok {
			continue
		}
		var uids []int
		for field := range strings.FieldsSeq(rest) {
			uid, err := strconv.Atoi(field)
			if err != nil {
				return nil
			}
			uids = append(uids, uid)
		}
		return uids
	}
	return nil
}

// kubeletClaims reads a kubelet's command line, and the file that it names.
func kubeletClaims(args []string) claims {
	flags := map[string]string{}
	for i, arg := range args {
		name, value, ok := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !ok && i+1 < len(args) {
			value = args[i+1]
		}
		if strings.HasPrefix(arg, "-") {
			flags[name] = value
		}
	}
	var k kubeletconfig.KubeletConfiguration
	if file := flags["config"]; file != "" {
		k, _, _ = readConfig(file, "") // one that can't be read says nothing; then it is as by default
	}
	c := claims{
		"runtime":      socketOf(cmp.Or(flags["container-runtime-endpoint"], k.ContainerRuntimeEndpoint, "unix:///run/containerd/containerd.sock")),
		"root":         resolved(cmp.Or(flags["root-dir"], "/var/lib/kubelet")),
		"pod-logs-dir": resolved(cmp.Or(flags["pod-logs-dir"], k.PodLogsDir, "/var/log/pods")),
	}
	perQOS := k.CgroupsPerQOS == nil || *k.CgroupsPerQOS
	if set, err := strconv.ParseBool(flags["cgroups-per-qos"]); err == nil {
		perQOS = set
	}
	if perQOS {
		c["cgroup-root"] = filepath.Join("/", cmp.Or(flags["cgroup-root"], k.CgroupRoot))
	}
	return c
}
