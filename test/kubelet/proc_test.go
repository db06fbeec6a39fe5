package kubelet

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A proc is a process of a container.
type proc struct {
	pid, parent int
	start       string // with the pid it names the process for good
	instance    string // differs from one instance of a container to the next
}

// processes returns the processes on this machine that belong to the world's
// containers, by "pod/container". They are found by their environment, whatever process
// started them.
func (w *world) processes() map[string][]proc {
	found := map[string][]proc{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		data, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ")) // empty if it has exited, or is another user's
		env := environment(data)
		if env[worldVar] != w.dir {
			continue
		}
		// What sets instances apart is the cgroup, or the mark of the process
		// runtime, which uses none.
		cgroup, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cgroup"))
		p := proc{pid: pid, instance: string(cgroup) + env["KUBEPARTS_CONTAINER_ID"]}
		if p.parent, p.start = stat(pid); p.start != "" {
			key := strings.TrimSuffix(env[podVar], "-node") + "/" + env[containerVar]
			found[key] = append(found[key], p)
		}
	}
	return found
}

func environment(data []byte) map[string]string {
	env := map[string]string{}
	for kv := range strings.SplitSeq(string(data), "\x00") {
		if k, v, ok := strings.Cut(kv, "="); ok {
			env[k] = v
		}
	}
	return env
}

// stat returns the parent and the start of a process, "" if there is none or a
// zombie.
func stat(pid int) (parent int, start string) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, ""
	}
	// The name, in parentheses, may hold anything.
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" {
		return 0, ""
	}
	parent, _ = strconv.Atoi(fields[1])
	return parent, fields[19]
}

func (p proc) alive() bool {
	_, start := stat(p.pid)
	return start == p.start
}

// main returns the process of a container that the runtime started; ok is false
// if there is none.
func (w *world) main(key string) (p proc, ok bool) {
	all := w.processes()[key]
	for _, p := range all {
		if !slices.ContainsFunc(all, func(other proc) bool { return other.pid == p.parent }) {
			return p, true
		}
	}
	return proc{}, false
}

// twice returns the containers that have processes of two instances at the same time.
// /proc is read one process after the other, so that an instance may end after it was
// read and before its successor is read. The instances found are therefore looked up
// again: two that are both alive then were alive when the second pass began.
func (w *world) twice() []string {
	var found []string
	for key, procs := range w.processes() {
		living := map[string]int{}
		for _, p := range procs {
			if p.alive() {
				living[p.instance] = p.pid
			}
		}
		if len(living) > 1 {
			found = append(found, fmt.Sprintf("two instances of %s run, with processes %v", key, slices.Sorted(maps.Values(living))))
		}
	}
	return found
}

// signal sends a signal to a process of a container.
func (w *world) signal(p proc, s os.Signal) error {
	found, err := os.FindProcess(p.pid)
	if err != nil {
		return err
	}
	defer found.Release()
	return found.Signal(s)
}
