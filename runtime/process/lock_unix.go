//go:build linux || darwin

package process

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
const lockTimeout = 300 * time.Millisecond

// A dirLock is held by the one agent that uses a state directory. The kernel
// lets go of it when the agent ends, however that happens.
type dirLock struct{ file *os.File }

func lock(path string) (*dirLock, error) {
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
				return nil, fmt.Errorf("another agent uses it (process %s)", strings.TrimSpace(string(holder)))
			}
			return nil, err
		}
		<-time.After(10 * time.Millisecond)
	}
	// For people; nothing depends on it.
	if err := f.Truncate(0); err == nil {
		fmt.Fprintln(f, os.Getpid())
	}
	return &dirLock{file: f}, nil
}

// release lets go also if a child being forked right now holds a copy.
func (l *dirLock) release() error {
	return errors.Join(unix.Flock(int(l.file.Fd()), unix.LOCK_UN), l.file.Close())
}
