package process

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// becomeReaper makes orphaned descendants children of this process, in any session,
// so that all of them can be killed, as at the end of a PID namespace.
func becomeReaper(noNewPrivs bool) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	if noNewPrivs {
		return forbidNewPrivs()
	}
	return nil
}

// forbidNewPrivs sets no_new_privs for the calling thread and its children.
func forbidNewPrivs() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	return nil
}

// dieWithParent kills the container with its supervisor, because its output would
// no longer be read.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = unix.SIGKILL }

// reapMain reaps all children until p, and returns the exit status of p.
func reapMain(p *os.Process) (code, sig int) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return codeLost, 0 // no children: already reaped
		case pid == p.Pid:
			return exitOf(ws)
		}
	}
}

// killRest kills all remaining descendants. Their PIDs are not reused before they
// are reaped here. Children of a killed child become children, hence the loop.
func killRest(_ int, deadline time.Time) {
	for me := os.Getpid(); ; {
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if err == syscall.ECHILD {
				return
			}
			if pid <= 0 && err != syscall.EINTR {
				break
			}
		}
		if time.Now().After(deadline) {
			return
		}
		for p := range processes() {
			if p.ppid == me && p.state != 'Z' {
				unix.Kill(p.pid, unix.SIGKILL)
			}
		}
		<-time.After(2 * time.Millisecond)
	}
}

// awaitExit waits for the exit of a child without reaping it.
func awaitExit(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}
