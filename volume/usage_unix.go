//go:build unix

package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

func diskUsage(ctx context.Context, dir string) (statsapi.FsStats, error) {
	stats, err := fsUsage(dir)
	if err != nil {
		return stats, err
	}
	root, err := os.Stat(dir)
	if err != nil {
		return stats, fmt.Errorf("volume: measure: %w", err)
	}
	device := root.Sys().(*syscall.Stat_t).Dev
	var used, inodes uint64
	seen := map[uint64]bool{} // files with more than one name
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var info fs.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went meanwhile
		}
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		switch {
		case st.Dev != device && d.IsDir():
			return fs.SkipDir
		case st.Dev != device:
			return nil
		case st.Nlink > 1 && !d.IsDir():
			if seen[st.Ino] {
				return nil
			}
			seen[st.Ino] = true
		}
		used += uint64(st.Blocks) * 512
		inodes++
		return nil
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
	figure := func(n uint64) *uint64 { return &n }
	return statsapi.FsStats{
		Time:           metav1.NewTime(time.Now()),
		CapacityBytes:  figure(uint64(st.Blocks) * block),
		AvailableBytes: figure(uint64(st.Bavail) * block),
		UsedBytes:      figure((uint64(st.Blocks) - uint64(st.Bfree)) * block),
		Inodes:         figure(uint64(st.Files)),
		InodesFree:     figure(uint64(st.Ffree)),
		InodesUsed:     figure(uint64(st.Files) - uint64(st.Ffree)),
	}, nil
}
