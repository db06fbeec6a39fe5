package main

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

// temporarySocket is the most that the path of a new socket is longer than that of its
// directory, until it is renamed.
const temporarySocket = len("/.4294967295/s")

// A socket is a unix socket that only the agent's user may connect to.
type socket struct {
	*net.UnixListener
	path string
	made os.FileInfo
}

// listenUnix listens at path. The socket of a dead agent is replaced; anything else at
// path, a link too, is an error. The socket is made in a directory of mode 0700, and has
// its mode 0600 when it appears at path, so that at no time others may connect.
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
		_ = os.Remove(first) // there only after an error
		_ = os.Remove(dir)
	}()
	if len(first) > maxSocketPath {
		return nil, fmt.Errorf("listen unix %s: the path is too long: %d bytes at most in its directory's name", path, maxSocketPath-temporarySocket)
	}
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

// replaceable returns an error unless there is nothing at path, or a socket at which
// nothing listens.
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

// Close implements net.Listener. It removes the socket, unless another has replaced it.
func (s *socket) Close() error {
	if is, err := os.Lstat(s.path); err == nil && os.SameFile(is, s.made) {
		_ = os.Remove(s.path)
	}
	return s.UnixListener.Close()
}
