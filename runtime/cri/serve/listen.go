package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// maxPath is the maximum length in bytes of a unix socket path on all systems.
const maxPath = 103

// Listen listens on a unix socket: "unix:///run/fakecri.sock", an absolute path, or a
// relative path that begins with a dot. The socket file of a server that does not
// run is replaced, except on Windows, where it must be removed manually. It returns
// an error if a server answers on the socket or the file is not a socket. Only the
// owner and the group of the file can connect. The file is removed when the listener
// is closed. Two concurrent calls with the same path may both succeed.
func Listen(ctx context.Context, endpoint string) (net.Listener, error) {
	path := strings.TrimPrefix(endpoint, "unix://")
	switch {
	case strings.Contains(path, "://"):
		return nil, fmt.Errorf("serve: listen at %q: not a unix socket", endpoint)
	case path == endpoint && path != "" && path[0] != '.' && !filepath.IsAbs(path): // ":1234", "unix:s"
		return nil, fmt.Errorf("serve: listen at %q: must be unix:// and a path, or a path that begins with / or a dot", endpoint)
	case path == "":
		return nil, fmt.Errorf("serve: listen at %q: no path", endpoint)
	case len(path) > maxPath:
		return nil, fmt.Errorf("serve: listen at %q: path has %d bytes, maximum is %d", path, len(path), maxPath)
	}
	if err := clearPath(ctx, path); err != nil {
		return nil, fmt.Errorf("serve: listen at %s: %w", path, err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	if err := os.Chmod(path, 0o660); err != nil {
		return nil, errors.Join(fmt.Errorf("serve: %w", err), listener.Close())
	}
	return listener, nil
}

// clearPath removes the socket of a server that does not run.
func clearPath(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("file exists and is not a socket")
	}
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
	if err == nil {
		conn.Close()
		return errors.New("another server is listening")
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("check for another server: %w", err)
	}
	return os.Remove(path)
}
