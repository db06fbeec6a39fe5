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

// MemAvailable returns a function for Config.Memory that reports the kernel's
// estimate of the memory available without swapping, including reclaimable page cache.
// root is the host's root directory, as os.DirFS("/"); the function reads proc/meminfo.
func MemAvailable(root fs.FS) func(ctx context.Context) (Observation, error) {
	return func(context.Context) (Observation, error) {
		text, err := fs.ReadFile(root, "proc/meminfo")
		if err != nil {
			return Observation{}, err
		}
		available, errA := meminfo(text, "MemAvailable:")
		total, errT := meminfo(text, "MemTotal:")
		return Observation{Available: available, Capacity: total, At: time.Now()}, errors.Join(errA, errT)
	}
}

// meminfo returns a field of /proc/meminfo in bytes; the file has KiB.
func meminfo(text []byte, field string) (int64, error) {
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) < 2 || string(fields[0]) != field {
			continue
		}
		n, err := strconv.ParseInt(string(fields[1]), 10, 64)
		if err != nil || n < 0 || n > 1<<53 {
			return 0, fmt.Errorf("eviction: proc/meminfo: invalid %s %q", field, fields[1])
		}
		return n << 10, nil
	}
	return 0, fmt.Errorf("eviction: proc/meminfo: no field %s", field)
}
