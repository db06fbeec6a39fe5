package process

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// becomeReaper makes orphans among the descendants of this process its
// children, whatever session they fled to. It is what makes a container end
// as a whole, as a PID namespace would.
func becomeReaper(noNewPrivs bool) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	if noNewPrivs {
		return forbidNewPrivs()
	}
	return nil
}

// forbidNewPrivs is for the calling thread and what it forks.
func forbidNewPrivs() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	return nil
}

// dieWithParent: a container without its supervisor has nobody who reads its
// output, and would hang or die of the next line it prints. So it goes too.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = unix.SIGKILL }

// reapMain reaps every child until p, and says how p ended.
func reapMain(p *os.Process) (code, sig int) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return codeLost, 0 // no children: somebody else reaped it
		case pid == p.Pid:
			return exitOf(ws)
		}
	}
}

// killRest kills all that the main process left behind. Children of this
// process cannot be mistaken: a PID is not used again before it is reaped
// here. Those of a killed child become children, hence the loop.
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

// awaitExit waits for a child to end and leaves it to be reaped.
func awaitExit(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}
