package process

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Darwin has no subreapers, parent-death signals or no_new_privs: processes that
// leave the process group of a container outlive it, and a container whose
// supervisor was killed runs until the agent inspects it.

func becomeReaper(bool) error            { return nil }
func forbidNewPrivs() error              { return nil }
func dieWithParent(*syscall.SysProcAttr) {}

func reapMain(p *os.Process) (code, sig int) {
	state, err := p.Wait()
	if err != nil {
		return codeLost, 0
	}
	return exitOf(state.Sys().(syscall.WaitStatus))
}

// killRest kills the group. Its number is not reused while the group has members.
func killRest(group int, _ time.Time) { unix.Kill(-group, unix.SIGKILL) }

// awaitExit waits for the exit of a child without reaping it. For one that has
// exited it returns an error.
func awaitExit(pid int) {
	kq, err := unix.Kqueue()
	if err != nil {
		return
	}
	defer unix.Close(kq)
	change := []unix.Kevent_t{{Ident: uint64(pid), Filter: unix.EVFILT_PROC, Flags: unix.EV_ADD | unix.EV_ONESHOT, Fflags: unix.NOTE_EXIT}}
	for {
		_, err := unix.Kevent(kq, change, make([]unix.Kevent_t, 1), nil)
		if err != unix.EINTR {
			return
		}
	}
}
