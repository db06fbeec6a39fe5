package logrotate

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/internal/pause"
	"github.com/kubeparts/kubeparts/internal/untrusted"
)

const (
	stampLayout = "20060102-150405"
	compressed  = ".gz"
	temporary   = ".tmp"
)

// maxEntries is the maximum number of entries in the directory of a log.
const maxEntries = 10_000

// rotated returns the rotated files of a log, oldest first. It removes the remains of
// an interrupted compression: incomplete files, and files whose compression is
// complete.
func rotated(log string) ([]string, error) {
	entries, err := untrusted.ReadDir(filepath.Dir(log), maxEntries)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(log)+".") && e.Type().IsRegular() {
			names = append(names, filepath.Join(filepath.Dir(log), e.Name()))
		}
	}
	var errs []error
	names = slices.DeleteFunc(names, func(name string) bool {
		if strings.HasSuffix(name, temporary) || slices.Contains(names, name+compressed) {
			errs = append(errs, remove(name))
			return true
		}
		return false
	})
	slices.SortFunc(names, func(a, b string) int {
		return strings.Compare(strings.TrimSuffix(a, compressed), strings.TrimSuffix(b, compressed))
	})
	return names, errors.Join(errs...)
}

// remove removes a file. It is not an error if the file does not exist.
func remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// stamped returns the name for a log that is rotated: an unused one that sorts after
// those of all rotated files.
func stamped(log string, now time.Time) (string, error) {
	old, err := rotated(log)
	if err != nil {
		return "", err
	}
	for {
		name := log + "." + now.Format(stampLayout)
		if len(old) == 0 || strings.TrimSuffix(old[len(old)-1], compressed) < name {
			return name, nil
		}
		last := strings.TrimPrefix(strings.TrimSuffix(old[len(old)-1], compressed), log+".")
		at, err := time.ParseInLocation(stampLayout, last, now.Location())
		if err != nil {
			old = old[:len(old)-1] // not a rotated file
			continue
		}
		now = at.Add(time.Second)
	}
}

// prune removes all but the newest keep rotated files.
func prune(log string, keep int) error {
	old, err := rotated(log)
	if err != nil {
		return err
	}
	errs := []error{}
	for _, name := range old[:max(len(old)-keep, 0)] {
		errs = append(errs, remove(name))
	}
	return errors.Join(errs...)
}

// compressOld compresses all rotated files of a log except the newest.
func compressOld(ctx context.Context, log string, share float64) error {
	old, err := rotated(log)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range old[:max(len(old)-1, 0)] {
		if !strings.HasSuffix(name, compressed) {
			errs = append(errs, compress(ctx, name, share))
		}
	}
	return errors.Join(errs...)
}

// chunk is the number of bytes compressed between two pauses.
const chunk = 256 << 10

// compress replaces a file by its compressed form; at any moment at least one of them
// exists. It pauses so that it uses only the given share of a CPU.
func compress(ctx context.Context, name string, share float64) (err error) {
	in, err := untrusted.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed meanwhile
	}
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	tmp := name + temporary
	out, err := untrusted.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = out.Close()
			_ = os.Remove(tmp)
		}
	}()
	zip := gzip.NewWriter(out)
	for {
		began := time.Now()
		_, err := io.CopyN(zip, in, chunk)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("compress %s: %w", name, err)
		}
		if err := pause.For(ctx, time.Duration(float64(time.Since(began))*(1/share-1))); err != nil {
			return err
		}
	}
	// Sync before the original is removed, so that a power failure does not lose
	// both.
	if err := errors.Join(zip.Close(), out.Sync(), out.Close()); err != nil {
		return fmt.Errorf("compress %s: %w", name, err)
	}
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return remove(tmp) // pruned meanwhile
	}
	if err := os.Rename(tmp, name+compressed); err != nil {
		return err
	}
	return remove(name)
}
