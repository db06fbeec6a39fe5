//go:build linux || darwin

package dirlock

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lockTimeout covers the time in which a forked child of a killed agent still has the
// lock's descriptor, until it executes its program.
const lockTimeout = time.Second

// A Lock is a lock that only one process can hold. The kernel releases it when the
// process terminates in any way.
type Lock struct{ file *os.File }

// Take acquires the lock of the file at path, which it creates if necessary. It waits at
// most 1 second. If another process has the lock, it returns ErrHeld with the ID of that
// process.
func Take(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(lockTimeout); ; {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			holder, _ := os.ReadFile(path)
			f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, fmt.Errorf("%w (process %s)", ErrHeld, strings.TrimSpace(string(holder)))
			}
			return nil, err
		}
		<-time.After(10 * time.Millisecond)
	}
	// Only for the error message of Take.
	if err := f.Truncate(0); err == nil {
		fmt.Fprintln(f, os.Getpid())
	}
	return &Lock{file: f}, nil
}

// Release releases the lock, even if a child that is being forked has a copy of the
// descriptor.
func (l *Lock) Release() error {
	return errors.Join(unix.Flock(int(l.file.Fd()), unix.LOCK_UN), l.file.Close())
}
