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

// lockTimeout is longer than a child of a killed agent holds the lock's descriptor between
// fork and exec.
const lockTimeout = time.Second

// A Lock is held by one process. The kernel releases it when the process exits for any
// reason.
type Lock struct{ file *os.File }

// Take locks a file, which it creates if it does not exist. An error that wraps ErrHeld
// names the process that holds the lock.
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
	// For the error of other processes only.
	if err := f.Truncate(0); err == nil {
		fmt.Fprintln(f, os.Getpid())
	}
	return &Lock{file: f}, nil
}

// Release unlocks the file even if a child that is being forked holds a copy of the
// descriptor.
func (l *Lock) Release() error {
	return errors.Join(unix.Flock(int(l.file.Fd()), unix.LOCK_UN), l.file.Close())
}
