package volume

import (
	"context"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// DiskUsage measures what is in a directory, as du does: blocks, not lengths; a
// file with two names once; nothing of other file systems (vol-77). Capacity and
// what is free are those of the file system.
func DiskUsage(ctx context.Context, dir string) (statsapi.FsStats, error) {
	return diskUsage(ctx, dir)
}

// FSUsage asks the file system that dir is the root of (vol-77).
func FSUsage(dir string) (statsapi.FsStats, error) { return fsUsage(dir) }
