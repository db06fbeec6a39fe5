package volume

import (
	"context"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// DiskUsage returns the disk usage of a directory as du computes it: allocated blocks, hard links once,
// without other file systems mounted below it. Capacity and available bytes and inodes are those of the
// file system. If ctx is done it returns the error of ctx.
func DiskUsage(ctx context.Context, dir string) (statsapi.FsStats, error) {
	return diskUsage(ctx, dir)
}

// FSUsage returns the usage of the file system that contains dir.
func FSUsage(dir string) (statsapi.FsStats, error) { return fsUsage(dir) }
