package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// becomeSubreaper makes orphaned descendants children of this process (prctl(2)).
func becomeSubreaper() error {
	const setChildSubreaper = 36
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); errno != 0 {
		return errno
	}
	return nil
}

// A process is one that runs: not a zombie.
type process struct {
	pid, parent int
	command     string
}

func (p process) String() string { return fmt.Sprintf("process %d: %s", p.pid, p.command) }

// descendants returns the processes below this one.
func descendants() []process {
	var all, found []process
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p, ok := readProcess(pid); ok {
				all = append(all, p)
			}
		}
	}
	below := map[int]bool{os.Getpid(): true}
	for n := 0; n < len(below); { // until a pass adds none, since IDs wrap around
		n = len(below)
		for _, p := range all {
			if below[p.parent] && !below[p.pid] {
				below[p.pid] = true
				found = append(found, p)
			}
		}
	}
	return found
}

// readProcess reads a process, and reports whether it runs.
func readProcess(pid int) (process, bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return process{}, false
	}
	// The name, in parentheses, may contain anything; the state and the parent follow it.
	name := string(stat)
	end := strings.LastIndexByte(name, ')')
	fields := strings.Fields(name[end+1:])
	if end < 0 || len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
		return process{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return process{}, false
	}
	command, _ := os.ReadFile(dir + "/cmdline")
	text := strings.TrimSpace(strings.ReplaceAll(string(command), "\x00", " "))
	if text == "" {
		text = name[:end+1]
	}
	return process{pid: pid, parent: parent, command: text}, true
}
