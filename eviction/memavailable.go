package eviction

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"
)

// MemAvailable returns a measure of memory for [Config.Memory]: what the kernel
// takes to be available without swapping, page cache that it would give back
// included (F-16). root is the host's root, as os.DirFS("/"); it reads
// proc/meminfo.
func MemAvailable(root fs.FS) func(ctx context.Context) (MemoryFigure, error) {
	return func(context.Context) (MemoryFigure, error) {
		text, err := fs.ReadFile(root, "proc/meminfo")
		if err != nil {
			return MemoryFigure{}, err
		}
		available, errA := meminfo(text, "MemAvailable:")
		total, errT := meminfo(text, "MemTotal:")
		return MemoryFigure{Available: available, Capacity: total, At: time.Now()}, errors.Join(errA, errT)
	}
}

// meminfo reads a field of /proc/meminfo, which is in KiB.
func meminfo(text []byte, field string) (int64, error) {
	for line := range bytes.Lines(text) {
		words := bytes.Fields(line)
		if len(words) < 2 || string(words[0]) != field {
			continue
		}
		n, err := strconv.ParseInt(string(words[1]), 10, 64)
		if err != nil || n < 0 || n > 1<<53 {
			return 0, fmt.Errorf("eviction: proc/meminfo has %s %q", field, words[1])
		}
		return n << 10, nil
	}
	return 0, fmt.Errorf("eviction: proc/meminfo has no %s", field)
}
