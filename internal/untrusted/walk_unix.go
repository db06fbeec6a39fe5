//go:build unix

package untrusted

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

const (
	// maxHeld is the number of directories that Walk keeps open. It finds its way back
	// from deeper ones by "..".
	maxHeld = 64

	// walkBuffer is the number of bytes of a directory that Walk reads at a time.
	walkBuffer = 8 << 10
)

// Walk calls visit with the status of the directory at path and of everything below
// it, in no particular order. It enters a directory if visit returns true for it, and
// follows no link. Files that are removed meanwhile are skipped, and so are the remaining
// entries of a directory that is moved meanwhile. Walk returns the first error,
// visit's or its own, and ctx.Err() if ctx is done.
//
// The number of open descriptors does not grow with the tree, and the memory only by
// the names of directories in one buffer for each level of depth.
func Walk(ctx context.Context, path string, visit func(*unix.Stat_t) (enter bool, err error)) error {
	fd, err := openWalked(unix.AT_FDCWD, path)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	w := walk{visit: visit, buffer: make([]byte, walkBuffer)}
	defer w.close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return fmt.Errorf("stat %s: %w", path, err)
	}
	w.push(fd, &st)
	if enter, err := visit(&st); err != nil || !enter {
		return err
	}
	for len(w.levels) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.step(); err != nil {
			return fmt.Errorf("walk %s: %w", path, err)
		}
	}
	return nil
}

// A walk is a depth-first traversal. The directory of the last level is open.
type walk struct {
	visit  func(*unix.Stat_t) (bool, error)
	buffer []byte
	levels []level
}

// A level is a directory that has not been read to its end.
type level struct {
	fd       int // -1: closed, to be opened from below
	offset   int64
	device   uint64
	inode    uint64
	children []string // directories of the last buffer that are still to be entered
}

func openWalked(dir int, name string) (int, error) {
	return unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
}

func (w *walk) push(fd int, st *unix.Stat_t) {
	w.levels = append(w.levels, level{fd: fd, device: uint64(st.Dev), inode: uint64(st.Ino)})
}

func (w *walk) close() {
	for _, l := range w.levels {
		if l.fd >= 0 {
			_ = unix.Close(l.fd)
		}
	}
}

// step enters a directory, reads a part of one, or leaves one.
func (w *walk) step() error {
	l := &w.levels[len(w.levels)-1]
	if n := len(l.children); n > 0 {
		name := l.children[n-1]
		l.children = l.children[:n-1]
		return w.enter(l, name)
	}
	n, err := unix.ReadDirent(l.fd, w.buffer)
	switch {
	case errors.Is(err, unix.EINTR):
		return nil
	case errors.Is(err, unix.ENOENT): // removed while open
		n = 0
	case err != nil:
		return err
	}
	if n == 0 {
		return w.leave()
	}
	return w.read(l, w.buffer[:n])
}

func (w *walk) read(l *level, entries []byte) error {
	_, _, names := unix.ParseDirent(entries, -1, nil)
	for _, name := range names {
		var st unix.Stat_t
		err := unix.Fstatat(l.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return err
		}
		enter, err := w.visit(&st)
		if err != nil {
			return err
		}
		if enter && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			l.children = append(l.children, name)
		}
	}
	return nil
}

func (w *walk) enter(l *level, name string) error {
	fd, err := openWalked(l.fd, name)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil // removed or replaced
	}
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || uint64(st.Dev) != l.device {
		_ = unix.Close(fd) // something was mounted there
		return err
	}
	if len(w.levels) > maxHeld {
		if l.offset, err = unix.Seek(l.fd, 0, io.SeekCurrent); err != nil {
			_ = unix.Close(fd)
			return err
		}
		_ = unix.Close(l.fd)
		l.fd = -1
	}
	w.push(fd, &st)
	return nil
}

// leave continues with the parent directory. If the current directory has been moved, it
// continues with the nearest open ancestor.
func (w *walk) leave() error {
	from := w.levels[len(w.levels)-1].fd
	defer unix.Close(from)
	w.levels = w.levels[:len(w.levels)-1]
	if len(w.levels) == 0 || w.levels[len(w.levels)-1].fd >= 0 {
		return nil
	}
	l := &w.levels[len(w.levels)-1]
	if fd, err := openWalked(from, ".."); err == nil {
		var st unix.Stat_t
		err = unix.Fstat(fd, &st)
		if err == nil && uint64(st.Dev) == l.device && uint64(st.Ino) == l.inode {
			_, err = unix.Seek(fd, l.offset, io.SeekStart)
			l.fd = fd
			return err
		}
		_ = unix.Close(fd)
	}
	for w.levels[len(w.levels)-1].fd < 0 {
		w.levels = w.levels[:len(w.levels)-1]
	}
	return nil
}
