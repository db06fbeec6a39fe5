package machine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// openPrograms returns the disk of c.Programs. It makes it unless one of the same files is in the cache.
func openPrograms(ctx context.Context, c Config) (string, error) {
	files, _, err := describe(c.Programs)
	if err != nil {
		return "", err
	}
	disk := filepath.Join(c.Cache, "programs-"+files+".img")
	if _, err := os.Stat(disk); err == nil {
		return disk, nil
	}
	earlier, err := filepath.Glob(filepath.Join(c.Cache, "programs-*.img"))
	if err != nil {
		return "", err
	}
	for _, name := range earlier {
		if err := os.Remove(name); err != nil {
			return "", err
		}
	}
	c.Say("making the disk of the programs")
	if err := makeDiskOf(ctx, c.Programs, disk+".new"); err != nil {
		return "", err
	}
	return disk, os.Rename(disk+".new", disk)
}

// makeDiskOf makes a disk that is large enough for the files of a directory.
func makeDiskOf(ctx context.Context, dir, file string) error {
	_, size, err := describe(dir)
	if err != nil {
		return err
	}
	return makeDisk(ctx, dir, file, fmt.Sprintf("%dM", 32+size>>20*21/20))
}

// describe returns a text that differs if the names, sizes or times of the files of a directory do, and the sum of
// their sizes.
func describe(dir string) (text string, size int64, err error) {
	sum := sha256.New()
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		below, err := filepath.Rel(dir, path)
		modified := info.ModTime().UnixNano()
		if info.Mode().Type() == fs.ModeSymlink { // made again in each run
			modified = 0
		}
		fmt.Fprintln(sum, below, info.Mode(), info.Size(), modified)
		size += info.Size()
		return err
	})
	return hex.EncodeToString(sum.Sum(nil))[:16], size, err
}
