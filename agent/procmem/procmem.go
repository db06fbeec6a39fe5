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

	// GCPercent is the garbage collection target percentage from the first release on; see
	// debug.SetGCPercent. The heap of an idle agent grows slowly, so that a low percentage costs
	// little time. Zero means 40. If it is negative, or the environment variable GOGC is set, the
	// percentage is not changed.
	GCPercent int

	// Logger is used for failures, which are retried. If nil, slog.Default() is used.
	Logger *slog.Logger
}

// Run calls [Release] until ctx is done. Negative durations count as zero.
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
	for first := true; pause.For(ctx, wait) == nil; first = false {
		if first && cfg.GCPercent >= 0 {
			setGCPercent(cmp.Or(cfg.GCPercent, 40))
		}
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
