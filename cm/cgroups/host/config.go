package host

import (
	"log/slog"

	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// Config configures a [Tree].
type Config struct {
	// Driver creates the cgroups. Empty means cgroupfs.
	Driver cgroups.Driver

	// Root is the path below the mount that contains all names, such as that of a
	// delegated subtree ([Delegate]). Empty means the whole hierarchy.
	Root string

	// Logger gets every process that Remove kills. If nil, they are not logged.
	Logger *slog.Logger
}
