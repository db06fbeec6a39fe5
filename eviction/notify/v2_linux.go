package notify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// trigger is the PSI trigger: some task stalled on memory for 150 ms in total within a second.
const trigger = "some 150000 1000000"

// waitPressure calls low for events of cgroup v2: a limit was reached, or tasks stalled on
// memory. It returns when ctx is done, or an error if neither event is available.
func (n *Notifier) waitPressure(ctx context.Context, low func()) error {
	var files []*os.File
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	events, errEvents := open(filepath.Join(n.cfg.Dir, "memory.events"), unix.O_RDONLY)
	if errEvents == nil {
		files = append(files, events)
	}
	pressure, errPressure := openTrigger(n.cfg.Dir)
	if errPressure == nil {
		files = append(files, pressure)
	}
	if len(files) == 0 {
		return errors.Join(errEvents, errPressure)
	}
	// Go's poller does not support these events (EPOLLPRI), so this blocks a thread.
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	defer func() { _ = unix.Close(wake) }()
	stopped := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(stopped)
		_, _ = unix.Write(wake, []byte{1, 0, 0, 0, 0, 0, 0, 1})
	})
	defer func() {
		if !unhook() {
			<-stopped // otherwise it could write to a reused file descriptor
		}
	}()
	fds := []unix.PollFd{{Fd: int32(wake), Events: unix.POLLIN}}
	for _, f := range files {
		fds = append(fds, unix.PollFd{Fd: int32(f.Fd()), Events: unix.POLLPRI})
	}
	buf := make([]byte, 4096)
	if errEvents == nil {
		_, _ = events.ReadAt(buf, 0) // discards earlier events
	}
	for ctx.Err() == nil {
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("poll: %w", err)
		}
		for i := range files {
			got := fds[i+1].Revents
			removed := got&(unix.POLLERR|unix.POLLNVAL|unix.POLLHUP) != 0
			if files[i] == events && got&unix.POLLPRI != 0 {
				// Each event of memory.events has POLLERR; the file can be read only if
				// the cgroup exists.
				_, err := events.ReadAt(buf, 0)
				removed = err != nil && !errors.Is(err, io.EOF)
			}
			switch {
			case removed:
				return fmt.Errorf("%s: cgroup was removed", files[i].Name())
			case got&unix.POLLPRI != 0:
				low()
			}
		}
	}
	return nil
}

// openTrigger sets up a PSI trigger of the cgroup, or of the machine for the root cgroup, which
// has no such file.
func openTrigger(dir string) (*os.File, error) {
	f, err := open(filepath.Join(dir, "memory.pressure"), unix.O_RDWR)
	if errors.Is(err, os.ErrNotExist) {
		if _, root := os.Stat(filepath.Join(dir, "memory.current")); errors.Is(root, os.ErrNotExist) {
			f, err = open("/proc/pressure/memory", unix.O_RDWR)
		}
	}
	if err != nil {
		return nil, err
	}
	if _, err := f.WriteString(trigger + "\x00"); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// open opens a file without registering it with Go's poller, unlike os.Open: an event of a PSI
// trigger is delivered to the first poller only.
func open(path string, flags int) (*os.File, error) {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}
