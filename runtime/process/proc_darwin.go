package process

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// processStart is the second half of an identity: on darwin the time of day
// of the start, which also tells boots apart.
func processStart(pid int) (string, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return "", err
	}
	t := info.Proc.P_starttime
	return fmt.Sprintf("%d.%06d", t.Sec, t.Usec), nil
}

// parentOf returns 0 if there is no such process.
func parentOf(pid int) int {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0
	}
	return int(info.Eproc.Ppid)
}

// marked: other processes' environments are not to be read on darwin.
func marked(string) []int { return nil }
