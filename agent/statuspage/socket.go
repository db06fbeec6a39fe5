package statuspage

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// maxSocketPath is the longest path of a unix socket, in bytes, that all systems accept.
const maxSocketPath = 103

// maxSocketDir is the longest path of the directory of a socket, in bytes: until it is
// renamed, a socket is in a temporary directory there.
const maxSocketDir = maxSocketPath - len("/.4294967295/s")

// A socket is a unix socket that only the user of the process can connect to.
type socket struct {
	*net.UnixListener
	path string
	made os.FileInfo
}

// listenUnix listens at path. It replaces a socket at which no process listens; any other
// file at path, also a symbolic link, is an error. The socket is created in a directory
// of mode 0700 and has the mode 0600 before it appears at path, so that other users can
// never connect.
func listenUnix(path string) (*socket, error) {
	if err := replaceable(path); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".")
	if err != nil {
		return nil, err
	}
	first := filepath.Join(dir, "s")
	defer func() {
		_ = os.Remove(first) // exists only after an error
		_ = os.Remove(dir)
	}()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: first, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // its path changes
	s := &socket{UnixListener: l, path: path}
	if err = os.Chmod(first, 0o600); err == nil {
		err = os.Rename(first, path) // replaces a link, and does not follow it
	}
	if err == nil {
		s.made, err = os.Lstat(path)
	}
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return s, nil
}

// replaceable returns nil if path does not exist, or is a socket at which no process
// listens.
func replaceable(path string) error {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("listen unix %s: the file is not a socket", path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	switch {
	case err == nil:
		_ = c.Close()
		return fmt.Errorf("listen unix %s: %w", path, syscall.EADDRINUSE)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// Addr implements net.Listener.
func (s *socket) Addr() net.Addr { return &net.UnixAddr{Name: s.path, Net: "unix"} }

// Close implements net.Listener. It removes the socket, unless it has been replaced.
func (s *socket) Close() error {
	if is, err := os.Lstat(s.path); err == nil && os.SameFile(is, s.made) {
		_ = os.Remove(s.path)
	}
	return s.UnixListener.Close()
}
