package unixgrpc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
)

// Listen listens on a Unix socket that only its owner and group can connect to. The socket
// file of a server that does not run is replaced. It returns an error if a server answers on
// the socket, and if the file is not a socket: a symbolic link is not followed. The file is
// removed when the listener is closed. Two concurrent calls with the same path may both
// succeed.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	if err := clearPath(ctx, path); err != nil {
		return nil, fmt.Errorf("listen at %s: %w", path, err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o660); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// wsaConnRefused is the ECONNREFUSED of Windows. Other systems have no such error.
const wsaConnRefused = syscall.Errno(10061)

// clearPath removes the socket of a server that does not run.
func clearPath(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("file exists and is not a socket")
	}
	err = dial(ctx, path)
	if err == nil {
		return errors.New("another server is listening")
	}
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, wsaConnRefused) {
		err = os.Remove(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a server that ends removes its socket
		return fmt.Errorf("check for another server: %w", err)
	}
	return nil
}

// Serves reports whether a server answers on the socket.
func Serves(ctx context.Context, path string) bool { return dial(ctx, path) == nil }

func dial(ctx context.Context, path string) error {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
	if err != nil {
		return err
	}
	return conn.Close()
}
