package notify

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// events waits for what the kernel tells of each level, with cgroup v1: an
// eventfd is counted up when the use passes the level, in either direction.
func (n *Notifier) events(ctx context.Context, low func()) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	var open []*os.File
	closeAll := func() {
		for _, f := range open {
			_ = f.Close() // which ends its registration, and who reads it
		}
		open = nil
	}
	defer closeAll()
	passed := make(chan struct{}, 1)
	for {
		closeAll()
		for _, level := range n.current() {
			f, err := register(n.cfg.Dir, level)
			if err != nil {
				return err
			}
			open = append(open, f)
			wg.Go(func() { count(f, passed) })
		}
		// What was passed before it was registered is told of by nobody.
		var again <-chan time.Time
		for set := false; !set; {
			rising, err := n.look()
			if err != nil {
				return err
			}
			if rising {
				low()
			}
			select {
			case <-ctx.Done():
				return nil
			case <-n.changed:
				set = true
			case <-passed:
				again = time.After(settle)
			case <-again:
			case <-time.After(n.cfg.Poll * slowLooks):
				// In case the group was made anew, of which no event tells.
			}
		}
	}
}

// settle is when the use is read once more after an event. The kernel charges memory in
// batches per processor: right after the event the use can be below the level again, and
// passes it for good between two of the kernel's checks, with no other event.
const settle = 100 * time.Millisecond

// slowLooks is how much less often is looked where the kernel tells by itself.
const slowLooks = 40

// register asks for events of a level.
func register(dir string, level int64) (*os.File, error) {
	usage, err := os.Open(filepath.Join(dir, "memory.usage_in_bytes"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = usage.Close() }() // the kernel has a reference of its own
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	event := os.NewFile(uintptr(fd), "eventfd")
	line := fmt.Sprintf("%d %d %d", fd, usage.Fd(), level)
	if err := os.WriteFile(filepath.Join(dir, "cgroup.event_control"), []byte(line), 0o600); err != nil {
		_ = event.Close()
		return nil, err
	}
	return event, nil
}

// count passes events on until the file is closed.
func count(event *os.File, passed chan<- struct{}) {
	buf := make([]byte, 8)
	for {
		n, err := event.Read(buf)
		if err != nil || n != len(buf) || binary.NativeEndian.Uint64(buf) == 0 {
			return
		}
		select {
		case passed <- struct{}{}:
		default:
		}
	}
}
