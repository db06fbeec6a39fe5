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

// lockTimeout covers the moment in which a child of a killed agent, forked and
// about to execute something else, still holds the lock's descriptor.
const lockTimeout = time.Second

// A Lock is held by the one agent that uses something. The kernel lets go of it when
// the agent ends, however that happens.
type Lock struct{ file *os.File }

// Take takes the lock of a file, which is made. An error that is ErrHeld names the
// process that has it.
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
	// For people; nothing depends on it.
	if err := f.Truncate(0); err == nil {
		fmt.Fprintln(f, os.Getpid())
	}
	return &Lock{file: f}, nil
}

// Release lets go also if a child being forked right now holds a copy.
func (l *Lock) Release() error {
	return errors.Join(unix.Flock(int(l.file.Fd()), unix.LOCK_UN), l.file.Close())
}
