//go:build linux || darwin

package process

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// The FIFO "alive" of a container has a writer from before the fork of its
// supervisor until the supervisor has exited: the kernel closes the descriptors
// of a killed process. It shows any agent whether there is a supervisor, without
// a PID that could have been reused; a read waits for the supervisor's exit.

func makeAlive(path string) error { return unix.Mkfifo(path, 0o600) }

// holdAlive opens the writing end, which a supervisor inherits. It opens both
// ends, because opening only the writing one blocks without a reader.
func holdAlive(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDWR, 0) }

// isAlive reports whether the FIFO has a writer.
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

// signalProcess sends a signal to the process that id identifies. It reports
// whether that process existed.
func signalProcess(id identity, sig int) (bool, error) {
	// The handle is opened before the check: with a pidfd, the checked process
	// is the one that is signalled.
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

// killMarked kills the processes of a container whose supervisor does not run.
func killMarked(id string) {
	for _, pid := range marked(id) {
		unix.Kill(pid, unix.SIGKILL)
	}
}

// is reports whether the process that id identifies exists.
func is(id identity) bool {
	if id.PID <= 1 || id.Start == "" {
		return false
	}
	start, err := processStart(id.PID)
	return err == nil && start == id.Start
}

// signalNumber returns 0 for a name unknown to this system.
func signalNumber(name string) int { return int(unix.SignalNum(name)) }
