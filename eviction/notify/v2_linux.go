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

// trigger is what a PSI trigger waits for: some task having to wait for memory
// for 150 ms in all, within a second.
const trigger = "some 150000 1000000"

// distress waits for what the kernel tells of a group of cgroup v2: that it met a
// limit, or that its tasks wait for memory. It returns when ctx ends, or there is
// neither.
func (n *Notifier) distress(ctx context.Context, low func()) error {
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
	// The runtime's poller does not know of such events (EPOLLPRI), so it takes
	// a thread.
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
			<-stopped // it must not write to a descriptor that is another's by then
		}
	}()
	fds := []unix.PollFd{{Fd: int32(wake), Events: unix.POLLIN}}
	for _, f := range files {
		fds = append(fds, unix.PollFd{Fd: int32(f.Fd()), Events: unix.POLLPRI})
	}
	buf := make([]byte, 4096)
	if errEvents == nil {
		_, _ = events.ReadAt(buf, 0) // what has happened before is not news
	}
	for ctx.Err() == nil {
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("poll: %w", err)
		}
		for i := range files {
			got := fds[i+1].Revents
			gone := got&(unix.POLLERR|unix.POLLNVAL|unix.POLLHUP) != 0
			if files[i] == events && got&unix.POLLPRI != 0 {
				// POLLERR goes with each event of such a file; only one of a
				// group that is there can be read.
				_, err := events.ReadAt(buf, 0)
				gone = err != nil && !errors.Is(err, io.EOF)
			}
			switch {
			case gone:
				return fmt.Errorf("%s: the group is gone", files[i].Name())
			case got&unix.POLLPRI != 0:
				low()
			}
		}
	}
	return nil
}

// openTrigger asks for events of a group's memory pressure; of the whole machine's
// for the root, which has no such file.
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

// open opens a file that the runtime's poller is not told of, as os.Open would: an
// event of a PSI trigger goes to the first who polls, and that would often be it.
func open(path string, flags int) (*os.File, error) {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}
