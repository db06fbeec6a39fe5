package process

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Darwin has no subreapers, no parent-death signal and no no_new_privs: what
// leaves the process group of a container outlives it, and so does a
// container whose supervisor was killed, until the agent looks.

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

// killRest kills the group. Its number is not given to anybody else while the
// group has members.
func killRest(group int, _ time.Time) { unix.Kill(-group, unix.SIGKILL) }

// awaitExit waits for a child to end and leaves it to be reaped. One that has
// ended already cannot be watched, which is an error and just as well.
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
