package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kubeparts/kubeparts/internal/runonce"
)

// Config configures a [Notifier].
type Config struct {
	// Dir is the directory of the cgroup, with cgroup v1 that of the memory controller.
	// Required unless Usage is set.
	Dir string

	// Usage returns the memory usage in bytes, including page cache. If nil, it is read
	// from the cgroup. The root of cgroup v2 has no such file; for it the usage of the
	// machine is read from /proc/meminfo.
	Usage func() (int64, error)

	// Poll is the interval at which the usage is read where the kernel does not report
	// changes. Zero means 250 ms.
	Poll time.Duration

	// Logger receives the log. If nil, nothing is logged.
	Logger *slog.Logger
}

const defaultPoll = 250 * time.Millisecond

// A Notifier watches one cgroup.
type Notifier struct {
	cfg     Config
	ran     runonce.Guard
	changed chan struct{} // levels were set

	// mu guards the fields below.
	mu     sync.Mutex
	levels []int64
	over   int // how many of them the last check found exceeded
}

// New returns a Notifier, or an error if cfg is invalid or the usage cannot be read. It starts
// no goroutine.
func New(cfg Config) (*Notifier, error) {
	if cfg.Dir == "" && cfg.Usage == nil {
		return nil, errors.New("notify: Config.Dir is empty")
	}
	if cfg.Poll < 0 {
		return nil, fmt.Errorf("notify: Config.Poll is negative: %v", cfg.Poll)
	}
	if cfg.Poll == 0 {
		cfg.Poll = defaultPoll
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Usage == nil {
		cfg.Usage = usageIn(cfg.Dir)
	}
	if _, err := cfg.Usage(); err != nil {
		return nil, fmt.Errorf("notify: read memory usage: %w", err)
	}
	return &Notifier{cfg: cfg, changed: make(chan struct{}, 1)}, nil
}

// Update sets the levels, in bytes of usage including page cache. It does not block.
func (n *Notifier) Update(levels []int64) error {
	n.mu.Lock()
	n.levels = slices.Clone(levels)
	n.mu.Unlock()
	select {
	case n.changed <- struct{}{}:
	default:
	}
	return nil
}

// check reads the usage and reports whether it exceeds more levels than the last time.
func (n *Notifier) check() (bool, error) {
	used, err := n.cfg.Usage()
	if err != nil {
		return false, fmt.Errorf("notify: read memory usage: %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	over := 0
	for _, level := range n.levels {
		if used >= level {
			over++
		}
	}
	rising := over > n.over
	n.over = over
	return rising, nil
}

func (n *Notifier) current() []int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.levels)
}

// poll checks the usage each period.
func (n *Notifier) poll(ctx context.Context, low func()) error {
	ticker := time.NewTicker(n.cfg.Poll)
	defer ticker.Stop()
	failed := 0
	for {
		switch rising, err := n.check(); {
		case err != nil && failed == maxFailures:
			return err
		case err != nil:
			failed++
		default:
			failed = 0
			if rising {
				low()
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-n.changed:
		}
	}
}

// maxFailures is how many consecutive reads may fail: the cgroup may be recreated.
const maxFailures = 20

// usageIn returns a function that reads the usage of a cgroup.
func usageIn(dir string) func() (int64, error) {
	return func() (int64, error) {
		for _, name := range []string{"memory.usage_in_bytes", "memory.current"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return 0, err
			}
			return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		}
		if _, err := os.Stat(filepath.Join(dir, "cgroup.controllers")); err != nil {
			return 0, fmt.Errorf("%s is not a cgroup with a memory controller: %w", dir, os.ErrNotExist)
		}
		return machineUsage("/proc/meminfo")
	}
}

// machineUsage returns the memory usage of the machine.
func machineUsage(meminfo string) (int64, error) {
	text, err := os.ReadFile(meminfo)
	if err != nil {
		return 0, err
	}
	total, free := int64(-1), int64(-1)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		n, err := strconv.ParseInt(fields[1], 10, 53)
		if err != nil {
			continue
		}
		switch fields[0] {
		case "MemTotal:":
			total = n << 10
		case "MemFree:":
			free = n << 10
		}
	}
	if total < 0 || free < 0 || free > total {
		return 0, fmt.Errorf("%s has no MemTotal and MemFree", meminfo)
	}
	return total - free, nil
}
