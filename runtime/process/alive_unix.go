//go:build linux || darwin

package process

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// The FIFO "alive" of a container has a writer from before its supervisor is
// forked until the supervisor has ended, however it ended: the kernel closes
// what a killed process held. So it tells, to any agent and without a PID that
// could have been used again, whether there is a supervisor; and reading it
// waits for the end of one.

func makeAlive(path string) error { return unix.Mkfifo(path, 0o600) }

// holdAlive opens the end that a supervisor inherits. It opens both ends as
// the writing one alone would wait for a reader.
func holdAlive(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDWR, 0) }

// isAlive tells whether anybody holds the writing end.
func isAlive(path string) (bool, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var b [1]byte
	for {
		switch n, err := unix.Read(fd, b[:]); {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return true, nil
		case err != nil:
			return false, &os.PathError{Op: "read", Path: path, Err: err}
		case n == 0:
			return false, nil
		}
	}
}

// signalProcess sends a signal to the process that id names, if it is still
// that one. It tells whether it was.
func signalProcess(id identity, sig int) (bool, error) {
	// The handle first, then the check: where the kernel has descriptors of
	// processes, what was checked is what is signalled.
	p, err := os.FindProcess(id.PID)
	if err != nil || id.PID <= 1 {
		return false, nil
	}
	defer p.Release()
	if !is(id) {
		return false, nil
	}
	if err := p.Signal(unix.Signal(sig)); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return true, fmt.Errorf("signal process %d: %w", id.PID, err)
	}
	return true, nil
}

// killGroup kills the group that the process leads.
func killGroup(leader identity) error {
	if leader.PID <= 1 || !is(leader) {
		return nil
	}
	if err := unix.Kill(-leader.PID, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill process group %d: %w", leader.PID, err)
	}
	return nil
}

// killMarked kills what is left of a container whose supervisor is of no help.
func killMarked(id string) {
	for _, pid := range marked(id) {
		unix.Kill(pid, unix.SIGKILL)
	}
}

// is tells whether the process that id names still exists.
func is(id identity) bool {
	if id.PID <= 1 || id.Start == "" {
		return false
	}
	start, err := processStart(id.PID)
	return err == nil && start == id.Start
}

// signalNumber returns 0 for a name that this system does not know.
func signalNumber(name string) int { return int(unix.SignalNum(name)) }
