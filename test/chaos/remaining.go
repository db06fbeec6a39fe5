package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// remaining returns the remains of pods that are not in the API: sandboxes and containers of the
// runtime, shims and processes, mounts, cgroups and directories.
func (w *world) remaining(s observation) (lines []string, err error) {
	add := func(uid, format string, args ...any) {
		if !w.checker.known(uid) {
			lines = append(lines, fmt.Sprintf("of pod %s there is still ", w.checker.podName(uid))+fmt.Sprintf(format, args...))
		}
	}
	boxes := map[string]bool{}
	for _, b := range s.boxes {
		boxes[b.ID] = true
		if !w.stuck(b.uid, s) {
			add(b.uid, "sandbox %s", b.ID)
		}
	}
	for _, is := range s.instances {
		if !w.stuck(is.uid, s) {
			add(is.uid, "container %s, attempt %d", is.Name, is.RestartCount)
		}
	}
	for _, p := range processes(w.Dir) {
		add(p.uid, "process %d of %s", p.pid, p.container)
	}
	for box, pid := range shims(w.daemon.Dir()) {
		if !boxes[box] && !w.leaked(box) {
			lines = append(lines, fmt.Sprintf("shim %d has no sandbox: %s", pid, box))
		}
	}
	points, err := mounted()
	if err != nil {
		return lines, err
	}
	pods := filepath.Join(w.root(), "pods") + "/"
	for _, point := range points {
		if below, is := strings.CutPrefix(point, pods); is {
			uid, _, _ := strings.Cut(below, "/")
			add(uid, "mount %s", below)
		}
	}
	entries, err := os.ReadDir(pods)
	if err != nil && !os.IsNotExist(err) {
		return lines, err
	}
	for _, e := range entries {
		add(e.Name(), "directory %s%s", pods, e.Name())
	}
	isPod := func(name string) bool { return strings.HasPrefix(name, "pod") && strings.Count(name, "-") == 4 }
	for _, g := range groupsNamed(w.Cgroup(), isPod) {
		add(strings.TrimPrefix(filepath.Base(string(g)), "pod"), "cgroup %s", g)
	}
	slices.Sort(lines)
	return lines, nil
}

// stuck reports whether containerd refuses to remove a terminated pod. If a client disconnects
// while containerd creates a task, containerd reports the container as exited but keeps the
// task, although none of its processes exists, and refuses to remove the container. No call of
// the CRI resolves this.
func (w *world) stuck(uid string, s observation) bool {
	if w.checker.known(uid) || slices.ContainsFunc(s.instances, func(is instance) bool { return is.uid == uid && is.running() }) {
		return false
	}
	for _, is := range s.instances {
		if is.uid == uid && w.agent.logContains("cannot delete running task "+bareID(is.ID)) {
			w.checker.tolerateOnce("containerd refuses to remove a container whose start was cut short (\"cannot delete running task\")", is.ID)
			return true
		}
	}
	return false
}

// leaked reports whether containerd has lost a sandbox and left its shim, which happens if the
// start of the sandbox or of a container in it was interrupted, or if containerd was killed
// before it stored the address of the shim.
func (w *world) leaked(box string) bool {
	leaks := leaks(w.daemon.Log(1_000_000), box)
	if leaks {
		w.checker.tolerateOnce("containerd has left the shim of a sandbox whose start, or that of a container in it, was interrupted (\"context canceled\", or after its own death \"unable to load shim\")", box)
	}
	return leaks
}

// leaks reports whether containerd's log shows that a sandbox, or a container of a removed one,
// was not started because the client disconnected, or that a sandbox was removed whose shim
// containerd did not find after its restart.
func leaks(log, box string) bool {
	var removed, short, lost bool
	ids := map[string]bool{}
	for line := range strings.Lines(log) {
		line = strings.ReplaceAll(line, `\"`, `"`)
		if strings.Contains(line, `failed to start sandbox "`+box+`"`) && strings.Contains(line, "context canceled") {
			return true // it was never created
		}
		lost = lost || strings.Contains(line, `unable to load shim "`+box+`"`)
		if strings.Contains(line, `RemovePodSandbox "`+box+`" returns successfully`) {
			removed = true
		}
		if _, id, made := strings.Cut(line, `returns container id "`); made && strings.Contains(line, `CreateContainer within sandbox "`+box+`"`) {
			id, _, _ = strings.Cut(id, `"`)
			ids[id] = true
		}
		if _, id, start := strings.Cut(line, `StartContainer for "`); start && strings.Contains(line, "context canceled") {
			id, _, failed := strings.Cut(id, `" failed`)
			short = short || failed && ids[id]
		}
	}
	return removed && (short || lost)
}

// leftLogs returns the log directories of pods that are not in the API.
func (w *world) remainingLogs() (lines []string) {
	entries, _ := os.ReadDir(w.logs())
	for _, e := range entries {
		parts := strings.Split(e.Name(), "_") // namespace_name_uid
		if uid := parts[len(parts)-1]; !w.checker.known(uid) {
			lines = append(lines, "logs "+e.Name())
		}
	}
	return lines
}
