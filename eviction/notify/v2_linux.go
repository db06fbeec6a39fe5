package notify

import (
	"context"
	"errors"
	"fmt"
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
	events, errEvents := os.Open(filepath.Join(n.cfg.Dir, "memory.events"))
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
			switch got := fds[i+1].Revents; {
			case got&unix.POLLPRI != 0:
				if files[i] == events {
					_, _ = events.ReadAt(buf, 0)
				}
				low()
			case got&(unix.POLLERR|unix.POLLNVAL|unix.POLLHUP) != 0:
				return fmt.Errorf("%s: the group is gone", files[i].Name())
			}
		}
	}
	return nil
}

// openTrigger asks for events of a group's memory pressure; of the whole machine's
// for the root, which has no such file.
func openTrigger(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "memory.pressure"), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		if _, root := os.Stat(filepath.Join(dir, "memory.current")); errors.Is(root, os.ErrNotExist) {
			f, err = os.OpenFile("/proc/pressure/memory", os.O_RDWR, 0)
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
