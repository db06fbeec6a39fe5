package main

import (
	"context"
	"log/slog"
	"time"
)

// A lockFile is the file of --lock-file. A kubelet locks it before anything else, so that
// one that replaces another, on the host or in a container, starts after that has ended.
type lockFile struct {
	path string

	// exitOnContention is set by --exit-on-lock-contention: stop is called when another
	// process opens the file, as a kubelet does that waits for the lock.
	exitOnContention bool
	stop             func()

	logger *slog.Logger
}

// lockPeriod is the interval at which a file that another process has locked is tried.
const lockPeriod = 100 * time.Millisecond

// takeLockFile waits until no other process has locked the file, and locks it until release
// is called or the process ends.
func takeLockFile(ctx context.Context, l lockFile) (release func(), err error) {
	lock, err := l.open()
	if err != nil {
		return nil, err
	}
	for waiting := false; ; waiting = true {
		locked, err := lock.try()
		if err == nil && locked && l.exitOnContention {
			err = lock.watch(func() {
				l.logger.Info("Another process opened the lock file; stopping", "path", l.path)
				l.stop()
			})
		}
		if err != nil {
			lock.close()
			return nil, err
		}
		if locked {
			return lock.close, nil
		}
		if !waiting {
			l.logger.Info("Waiting for the lock file, which another process has locked", "path", l.path)
		}
		select {
		case <-time.After(lockPeriod):
		case <-ctx.Done():
			lock.close()
			return nil, ctx.Err()
		}
	}
}
