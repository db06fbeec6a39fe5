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
	var count func(path string, d fs.DirEntry, err error) error
	count = func(path string, d fs.DirEntry, err error) error {
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
		if d.IsDir() && len(path) > longPath {
			return walkBelow(path, count)
		}
		return nil
	}
	err = filepath.WalkDir(dir, count)
	if err != nil {
		return stats, fmt.Errorf("volume: measure: %w", err)
	}
	stats.UsedBytes, stats.InodesUsed = &used, &inodes
	return stats, nil
}

// longPath is how many bytes of a path are used: with what is below it, it must not
// have more than the kernel takes (4096), or whoever nests directories deeply enough
// is not measured.
const longPath = 3072

// walkBelow counts what is in a directory whose path is long, by another path of it.
func walkBelow(path string, count fs.WalkDirFunc) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return fs.SkipDir // it went meanwhile
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	short := fmt.Sprintf("/proc/self/fd/%d", fd)
	entries, err := os.ReadDir(short)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := filepath.WalkDir(filepath.Join(short, e.Name()), count); err != nil {
			return err
		}
	}
	return fs.SkipDir
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
