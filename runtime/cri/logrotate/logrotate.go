package logrotate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/internal/untrusted"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Runtime has containers whose logs are files. runtime/cri's is one.
type Runtime interface {
	Pods(ctx context.Context) ([]*runtime.Pod, error)
	LogPath(ctx context.Context, containerID string) (string, error)
	ReopenLog(ctx context.Context, containerID string) error
}

// Config configures a [Rotator].
type Config struct {
	// Runtime is whose logs are rotated. Required.
	Runtime Runtime

	// MaxSize is at how many bytes a log is full. Zero: 10 MiB; negative: logs
	// are not rotated (lg-2).
	MaxSize int64

	// MaxFiles is how many files there are of a log, the live one included. Zero:
	// 5. It must be more than 1 (lg-2).
	MaxFiles int

	// Workers is how many logs are rotated at the same time. Zero: 1.
	Workers int

	// Period is how often it is looked for containers that are new, and for logs
	// that are missing. Zero: 10 seconds.
	Period time.Duration

	// CPUShare is how much of one CPU compression may take, above 0 and at most
	// 1. Zero: a half.
	CPUShare float64

	// Rotated is told of each rotation, on the goroutine that did it; it must not
	// block. Nil: nobody is.
	Rotated func(Rotation)

	// Logger, nil discards.
	Logger *slog.Logger
}

// A Rotation tells of a log that was full.
type Rotation struct {
	ContainerID string
	Path        string // of the log
	To          string // what it is called now
	Size        int64  // how large it had become, when it was found to be full
}

// A Rotator rotates logs.
type Rotator struct {
	cfg Config
	ran runonce.Guard
}

// New returns a Rotator for cfg, or an error that says what is wrong with it. It
// starts nothing.
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
		errs = append(errs, fmt.Errorf("out of bounds: Workers %d, Period %v, CPUShare %v", cfg.Workers, cfg.Period, cfg.CPUShare))
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

// Pass looks at the log of each running container once, and rotates and compresses
// what has to be. It goes on after a failure, and joins the errors.
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
			err = errors.Join(r.rotate(ctx, id, path, size), compressOld(ctx, path, 1))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("logrotate: log of container %s: %w", id, err))
		}
	}
	return errors.Join(errs...)
}

// ignore drops what is no failure: a container that is gone, or has no log here.
func ignore(err error) error {
	if errors.Is(err, runtime.ErrNotFound) || errors.Is(err, runtime.ErrUnsupported) {
		return nil
	}
	return err
}

// running returns the IDs of the containers that run (lg-3).
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

// size returns how large a log is. One that is missing is opened anew (lg-4).
func (r *Rotator) size(ctx context.Context, id, path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := r.cfg.Runtime.ReopenLog(ctx, id); err != nil {
			return 0, fmt.Errorf("it is missing: %w", err)
		}
		info, err = os.Stat(path)
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// rotate gives the runtime a new file for a log that is full (lg-6), and removes
// those that are too many (lg-5).
func (r *Rotator) rotate(ctx context.Context, id, path string, size int64) error {
	to, err := stamped(path, time.Now())
	if err != nil {
		return err
	}
	if err := os.Rename(path, to); err != nil {
		return err
	}
	if err := r.cfg.Runtime.ReopenLog(ctx, id); err != nil {
		// The runtime still writes to it; it gets its name back, unless there is
		// a new file all the same.
		if _, missing := os.Lstat(path); errors.Is(missing, fs.ErrNotExist) {
			err = errors.Join(err, os.Rename(to, path))
		}
		return fmt.Errorf("it cannot be reopened: %w", err)
	}
	r.cfg.Rotated(Rotation{ContainerID: id, Path: path, To: to, Size: size})
	return prune(path, r.cfg.MaxFiles-1)
}

// Clean removes a log and all that was rotated from it (lg-8).
func Clean(log string) error {
	entries, err := untrusted.ReadDir(filepath.Dir(log), maxEntries)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err} // of too large a directory, some entries are known
	for _, e := range entries {
		if name := e.Name(); name == filepath.Base(log) || len(name) > len(filepath.Base(log)) && name[:len(filepath.Base(log))+1] == filepath.Base(log)+"." {
			errs = append(errs, remove(filepath.Join(filepath.Dir(log), name)))
		}
	}
	return errors.Join(errs...)
}
