package procmem

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/kubeparts/kubeparts/internal/pause"
)

// A Config is the configuration of [Run]. The zero value is valid.
type Config struct {
	// First is the time until the first release. Zero means 30 s.
	First time.Duration

	// Max is the maximum of the pauses between releases, which double. Zero means 10 min.
	Max time.Duration

	// GCPercent is the garbage collection target percentage; see debug.SetGCPercent. What pods
	// keep is allocated among the garbage of their starts, and the memory between cannot be
	// released: the smaller the heap is then, the smaller it stays. Zero means 40: with 110 pods
	// the heap is a fifth smaller than with Go's 100, for about 5 % more CPU time until they run.
	// If it is negative, or the environment variable GOGC is set, the percentage is not changed.
	GCPercent int

	// Logger is used for failures, which are retried. If nil, slog.Default() is used.
	Logger *slog.Logger
}

// Run sets the garbage collection target percentage, and calls [Release] until ctx is done.
// Negative durations count as zero.
func Run(ctx context.Context, cfg Config) {
	if os.Getenv("GOGC") != "" {
		cfg.GCPercent = -1
	}
	run(ctx, cfg, Release, debug.SetGCPercent)
}

func run(ctx context.Context, cfg Config, release func() (int64, error), setGCPercent func(int) int) {
	wait, limit, log := cfg.First, cfg.Max, cfg.Logger
	if wait <= 0 {
		wait = 30 * time.Second
	}
	if limit <= 0 {
		limit = 10 * time.Minute
	}
	if log == nil {
		log = slog.Default()
	}
	if cfg.GCPercent >= 0 {
		setGCPercent(cmp.Or(cfg.GCPercent, 40))
	}
	for pause.For(ctx, wait) == nil {
		wait = max(wait, min(2*wait, limit))
		if unmapped, err := release(); err != nil {
			log.Debug("Failed to release memory; will retry", "retryIn", wait, "err", err)
		} else {
			log.Debug("Released memory", "unmappedBytes", unmapped)
		}
	}
}

// Release collects garbage, returns the free heap to the system and unmaps the read-only pages of
// the program. It returns the resident size of the mappings whose pages it unmapped, in bytes. After
// an error some of the memory has been released.
func Release() (unmapped int64, err error) {
	debug.FreeOSMemory()
	return unmapProgram()
}
