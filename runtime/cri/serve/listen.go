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

// maxPath is how long the path of a unix socket may be on every system that has
// them, in bytes.
const maxPath = 103

// Listen listens at a unix socket: "unix:///run/fakecri.sock", or an absolute path,
// or a relative one that begins with a dot. The
// socket file of a server that is gone is replaced (except on Windows, where it
// has to be removed by hand); one where a server answers, or a file that is no
// socket, is an error. Only the file's owner and group may connect. The file is
// removed when the listener is closed. Two servers that start at the same moment
// at the same path are not told apart.
func Listen(ctx context.Context, endpoint string) (net.Listener, error) {
	path := strings.TrimPrefix(endpoint, "unix://")
	switch {
	case strings.Contains(path, "://"):
		return nil, fmt.Errorf("serve: listen at %q: not a unix socket", endpoint)
	case path == endpoint && path != "" && path[0] != '.' && !filepath.IsAbs(path): // ":1234", "unix:s"
		return nil, fmt.Errorf("serve: listen at %q: neither unix:// and a path nor a path that begins with / or a dot", endpoint)
	case path == "":
		return nil, fmt.Errorf("serve: listen at %q: no path", endpoint)
	case len(path) > maxPath:
		return nil, fmt.Errorf("serve: listen at %q: the path has %d bytes, of at most %d", path, len(path), maxPath)
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

// clearPath removes what a server that is gone left at path.
func clearPath(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("there is a file already, which is no socket")
	}
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
	if err == nil {
		conn.Close()
		return errors.New("another server listens there")
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("is another server there? %w", err)
	}
	return os.Remove(path)
}
