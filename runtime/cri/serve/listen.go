package serve

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/kubeparts/kubeparts/internal/unixgrpc"
)

// maxPath is the maximum length in bytes of a unix socket path on all systems.
const maxPath = 103

// Listen listens on a unix socket: "unix:///run/fakecri.sock", an absolute path, or a
// relative path that begins with a dot. The socket file of a server that does not
// run is replaced. It returns an error if a server answers on the socket or the file
// is not a socket; a symbolic link is not followed. Only the owner and the group of
// the file can connect. The file is removed when the listener is closed. Two
// concurrent calls with the same path may both succeed.
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
	listener, err := unixgrpc.Listen(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	return listener, nil
}
