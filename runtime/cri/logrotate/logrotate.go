package logrotate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/internal/untrusted"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Runtime has containers with log files. The one of package runtime/cri
// implements it.
type Runtime interface {
	Pods(ctx context.Context) ([]*runtime.Pod, error)
	LogPath(ctx context.Context, containerID string) (string, error)
	ReopenLog(ctx context.Context, containerID string) error
}

// Config configures a [Rotator].
type Config struct {
	// Runtime has the containers whose logs are rotated. Required. If its ReopenLog returns
	// runtime.ErrUnsupported, no log is rotated from then on.
	Runtime Runtime

	// MaxSize is the size in bytes at which a log is rotated. Zero means 10 MiB. A
	// negative value disables rotation.
	MaxSize int64

	// MaxFiles is the maximum number of files of a log, including the live one. It
	// must be greater than 1. Zero means 5.
	MaxFiles int

	// Workers is the number of logs that are rotated concurrently. Zero means 1.
	Workers int

	// Period is the interval at which containers are listed and missing logs are
	// reopened. Zero means 10 seconds.
	Period time.Duration

	// CPUShare is the fraction of one CPU that compression may use, above 0 and at
	// most 1. Zero means 0.5.
	CPUShare float64

	// Rotated is called after each rotation, on the goroutine of the worker. It must
	// not block. May be nil.
	Rotated func(Rotation)

	// Logger receives log messages. If nil, they are discarded.
	Logger *slog.Logger
}

// A Rotation describes one rotation.
type Rotation struct {
	ContainerID string
	Path        string // of the log
	To          string // the new path of the rotated file
	Size        int64  // in bytes, when it was checked
}

// A Rotator rotates logs. Run and Pass must not be called concurrently.
type Rotator struct {
	cfg Config
	ran runonce.Guard

	fixed atomic.Bool // the runtime does not reopen logs: none is rotated
}

// New returns a Rotator for cfg. It returns an error if Runtime is nil or a value is
// out of range.
func New(cfg Config) (*Rotator, error) {
	if cfg.MaxFiles == 0 {
		cfg.MaxFiles = 5
	}
	if cfg.CPUShare == 0 {
		cfg.CPUShare = 0.5
	}
	var errs []error
	if cfg.Runtime == nil {
		errs = append(errs, errors.New("Config.Runtime is nil"))
	}
	if cfg.MaxFiles <= 1 {
		errs = append(errs, fmt.Errorf("invalid MaxFiles %d, must be > 1", cfg.MaxFiles))
	}
	if cfg.Workers < 0 || cfg.Period < 0 || !(cfg.CPUShare > 0 && cfg.CPUShare <= 1) {
		errs = append(errs, fmt.Errorf("invalid Workers %d, Period %v or CPUShare %v", cfg.Workers, cfg.Period, cfg.CPUShare))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("logrotate: %w", err)
	}
	if cfg.MaxSize == 0 {
		cfg.MaxSize = 10 << 20
	}
	if cfg.Workers == 0 {
		cfg.Workers = 1
	}
	if cfg.Period == 0 {
		cfg.Period = 10 * time.Second
	}
	if cfg.Rotated == nil {
		cfg.Rotated = func(Rotation) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Rotator{cfg: cfg}, nil
}

// Pass checks the log of each running container once, rotates it if necessary, and
// prunes and compresses its rotated files. It continues after an error and joins the errors.
func (r *Rotator) Pass(ctx context.Context) error {
	if r.cfg.MaxSize < 0 {
		return nil
	}
	running, err := r.running(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for id := range running {
		path, err := r.cfg.Runtime.LogPath(ctx, id)
		if err != nil {
			errs = append(errs, ignore(err))
			continue
		}
		size, err := r.size(ctx, id, path)
		if err == nil && size >= r.cfg.MaxSize {
			err = r.rotate(ctx, id, path, size)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			err = errors.Join(err, r.tidy(ctx, path, 1))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("logrotate: log of container %s: %w", id, err))
		}
	}
	return errors.Join(errs...)
}

// ignore returns nil if the container was removed or has no log file.
func ignore(err error) error {
	if errors.Is(err, runtime.ErrNotFound) || errors.Is(err, runtime.ErrUnsupported) {
		return nil
	}
	return err
}

// running returns the IDs of the running containers.
func (r *Rotator) running(ctx context.Context) (map[string]bool, error) {
	pods, err := r.cfg.Runtime.Pods(ctx)
	if err != nil {
		return nil, fmt.Errorf("logrotate: list containers: %w", err)
	}
	ids := map[string]bool{}
	for _, pod := range pods {
		for _, c := range pod.Containers {
			if c.State == runtime.ContainerRunning {
				ids[c.ID] = true
			}
		}
	}
	return ids, nil
}

// size returns the size of a log. If the file of a container that still runs is missing, the
// runtime reopens it: that of a terminated container was removed with it.
func (r *Rotator) size(ctx context.Context, id, path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && !r.ended(ctx, id) {
		if err := r.cfg.Runtime.ReopenLog(ctx, id); err != nil {
			return 0, fmt.Errorf("reopen missing log: %w", err)
		}
		info, err = os.Stat(path)
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// rotate renames a log, makes the runtime reopen it, and removes surplus rotated
// files.
func (r *Rotator) rotate(ctx context.Context, id, path string, size int64) error {
	if r.fixed.Load() {
		return nil
	}
	to, err := stamped(path, time.Now())
	if err != nil {
		return err
	}
	if err := os.Rename(path, to); err != nil {
		return err
	}
	if err := r.cfg.Runtime.ReopenLog(ctx, id); err != nil {
		// The runtime still writes to it: undo the rename, unless the new file
		// exists nevertheless.
		if _, missing := os.Lstat(path); errors.Is(missing, fs.ErrNotExist) {
			err = errors.Join(err, os.Rename(to, path))
		}
		if errors.Is(err, runtime.ErrUnsupported) {
			if !r.fixed.Swap(true) {
				r.cfg.Logger.Warn("Runtime does not reopen logs; logs are not rotated", "err", err)
			}
			return nil
		}
		return fmt.Errorf("reopen log: %w", err)
	}
	r.cfg.Rotated(Rotation{ContainerID: id, Path: path, To: to, Size: size})
	return prune(path, r.cfg.MaxFiles-1)
}

// tidy removes surplus rotated files of a log and compresses the others except the newest.
func (r *Rotator) tidy(ctx context.Context, path string, share float64) error {
	return errors.Join(prune(path, r.cfg.MaxFiles-1), compressOld(ctx, path, share))
}

// Clean removes a log and its rotated files. It is not an error if there are none.
func Clean(log string) error {
	entries, err := untrusted.ReadDir(filepath.Dir(log), maxEntries)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err} // if the directory is too large, some entries are returned
	for _, e := range entries {
		if name := e.Name(); name == filepath.Base(log) || len(name) > len(filepath.Base(log)) && name[:len(filepath.Base(log))+1] == filepath.Base(log)+"." {
			errs = append(errs, remove(filepath.Join(filepath.Dir(log), name)))
		}
	}
	return errors.Join(errs...)
}
