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

// waitEvents waits for events of cgroup v1: the kernel increments an eventfd when the usage
// crosses its level in either direction.
func (n *Notifier) waitEvents(ctx context.Context, low func()) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	var open []*os.File
	closeAll := func() {
		for _, f := range open {
			_ = f.Close() // ends its registration and its reader
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
			wg.Go(func() { forward(f, passed) })
		}
		// A level crossed before its registration causes no event.
		var recheck <-chan time.Time
		for set := false; !set; {
			rising, err := n.check()
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
				recheck = time.After(recheckDelay)
			case <-recheck:
			case <-time.After(n.cfg.Poll * slowPoll):
				// The cgroup may have been recreated, which causes no event.
			}
		}
	}
}

// recheckDelay is how long after an event the usage is read once more. The kernel charges
// memory in batches per processor: right after an event the usage can be below the level
// again, and exceed it for good without another event.
const recheckDelay = 100 * time.Millisecond

// slowPoll is the factor by which the polling period is longer if there are events.
const slowPoll = 40

// register returns an eventfd for events of a level.
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

// forward sends events to passed until the file is closed.
func forward(event *os.File, passed chan<- struct{}) {
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
