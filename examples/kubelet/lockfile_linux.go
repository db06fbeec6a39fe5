package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// An openLock is an open lock file.
type openLock struct {
	file   *os.File
	events *os.File // nil if it is not watched
}

func (l lockFile) open() (*openLock, error) {
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600)
	return &openLock{file: f}, err
}

// try locks the file. It reports false if another process has locked it.
func (o *openLock) try() (locked bool, err error) {
	err = unix.Flock(int(o.file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return err == nil, err
}

// watch calls opened once, when the file is opened or deleted.
func (o *openLock) watch(opened func()) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("create inotify instance: %w", err)
	}
	o.events = os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, o.file.Name(), unix.IN_OPEN|unix.IN_DELETE_SELF); err != nil {
		return fmt.Errorf("watch for other processes: %w", err)
	}
	go func() {
		var event [unix.SizeofInotifyEvent + unix.NAME_MAX + 1]byte
		if n, _ := o.events.Read(event[:]); n > 0 { // close ends it
			opened()
		}
	}()
	return nil
}

func (o *openLock) close() {
	if o.events != nil {
		_ = o.events.Close()
	}
	_ = o.file.Close()
}
