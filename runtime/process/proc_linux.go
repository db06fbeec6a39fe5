package process

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// A procStat is the used part of /proc/<pid>/stat, see proc(5).
type procStat struct {
	pid, ppid, session int
	state              byte
	start              string // field 22: clock ticks since boot

	// CPU time in clock ticks, of the process and of its children that were reaped.
	user, system, childUser, childSystem uint64

	rssPages uint64
}

// parseStat parses one line. The command's name, in parentheses, can contain
// parentheses and spaces: the last parenthesis closes it.
func parseStat(data []byte) (procStat, error) {
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 1 || end < open {
		return procStat{}, errors.New("no command in parentheses")
	}
	f := strings.Fields(string(data[end+1:]))
	const first = 3 // number of the field that f begins with
	if len(f) <= 24-first {
		return procStat{}, fmt.Errorf("%d fields after the command, expected at least 22", len(f))
	}
	s := procStat{state: f[0][0], start: f[22-first]}
	var errs []error
	number := func(s string) uint64 {
		n, err := strconv.ParseUint(s, 10, 64)
		errs = append(errs, err)
		return n
	}
	s.pid = int(number(strings.TrimSpace(string(data[:open]))))
	s.ppid = int(number(f[4-first]))
	s.session = int(number(f[6-first]))
	s.user, s.system = number(f[14-first]), number(f[15-first])
	s.childUser, s.childSystem = number(f[16-first]), number(f[17-first])
	number(s.start)
	s.rssPages = number(f[24-first])
	return s, errors.Join(errs...)
}

func readStat(pid int) (procStat, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procStat{}, err
	}
	return parseStat(data)
}

// processes returns the processes in /proc, except those that exit meanwhile.
func processes() iter.Seq[procStat] {
	return func(yield func(procStat) bool) {
		dir, err := os.Open("/proc")
		if err != nil {
			return
		}
		names, _ := dir.Readdirnames(-1)
		dir.Close()
		for _, name := range names {
			pid, err := strconv.Atoi(name)
			if err != nil {
				continue
			}
			if s, err := readStat(pid); err == nil && !yield(s) {
				return
			}
		}
	}
}

// bootID identifies the boot, because start times are relative to it.
var bootID = sync.OnceValues(func() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data)), err
})

// processStart returns the start of an identity.
func processStart(pid int) (string, error) {
	s, err := readStat(pid)
	if err != nil {
		return "", err
	}
	boot, err := bootID()
	if err != nil {
		return "", err
	}
	return boot + "/" + s.start, nil
}

// parentOf returns 0 if there is no such process.
func parentOf(pid int) int {
	s, err := readStat(pid)
	if err != nil {
		return 0
	}
	return s.ppid
}

// marked returns the processes with the container ID in their environment, as far
// as this user can read it.
func marked(id string) []int {
	mark := []byte(envContainerID + "=" + id)
	var pids []int
	for p := range processes() {
		if p.state == 'Z' {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid), "environ"))
		if err != nil {
			continue
		}
		for kv := range bytes.SplitSeq(env, []byte{0}) {
			if bytes.Equal(kv, mark) {
				pids = append(pids, p.pid)
				break
			}
		}
	}
	return pids
}
