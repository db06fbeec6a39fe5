//go:build unix

package volume

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/internal/untrusted"
)

func diskUsage(ctx context.Context, dir string) (statsapi.FsStats, error) {
	stats, err := fsUsage(dir)
	if err != nil {
		return stats, err
	}
	var used, inodes uint64
	var device uint64
	linked := map[uint64]bool{} // files with more than one name
	err = untrusted.Walk(ctx, dir, func(st *unix.Stat_t) (enter bool, err error) {
		isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
		switch {
		case inodes == 0:
			device = uint64(st.Dev)
		case uint64(st.Dev) != device:
			return false, nil
		case st.Nlink > 1 && !isDir:
			if linked[st.Ino] {
				return false, nil
			}
			linked[st.Ino] = true
		}
		used += uint64(st.Blocks) * 512
		inodes++
		return isDir, nil
	})
	if err != nil {
		return stats, fmt.Errorf("volume: measure: %w", err)
	}
	stats.UsedBytes, stats.InodesUsed = &used, &inodes
	return stats, nil
}

func fsUsage(dir string) (statsapi.FsStats, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return statsapi.FsStats{}, fmt.Errorf("volume: measure %s: %w", dir, err)
	}
	block := uint64(st.Bsize)
	pointer := func(n uint64) *uint64 { return &n }
	return statsapi.FsStats{
		Time:           metav1.NewTime(time.Now()),
		CapacityBytes:  pointer(uint64(st.Blocks) * block),
		AvailableBytes: pointer(uint64(st.Bavail) * block),
		UsedBytes:      pointer((uint64(st.Blocks) - uint64(st.Bfree)) * block),
		Inodes:         pointer(uint64(st.Files)),
		InodesFree:     pointer(uint64(st.Ffree)),
		InodesUsed:     pointer(uint64(st.Files) - uint64(st.Ffree)),
	}, nil
}
