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
)

// Config configures a [Notifier].
type Config struct {
	// Dir is the directory of the control group: of the memory controller, with
	// cgroup v1. Required, unless Usage is set.
	Dir string

	// Usage reads how many bytes are in use, the page cache included. Nil: the
	// file of the group that says so; of the root of cgroup v2, which has none,
	// proc/meminfo is read, so that is the machine's.
	Usage func() (int64, error)

	// Poll is how often the use is read where the kernel does not tell of it.
	// Zero: 250 ms.
	Poll time.Duration

	// Logger, nil discards.
	Logger *slog.Logger
}

const defaultPoll = 250 * time.Millisecond

// A Notifier watches one control group.
type Notifier struct {
	cfg     Config
	changed chan struct{} // levels were set

	// mu guards the fields below.
	mu     sync.Mutex
	levels []int64
	over   int // how many of them were exceeded when that was looked at last
}

// New returns a Notifier for cfg, or an error that says what is wrong with it. It
// starts nothing.
func New(cfg Config) (*Notifier, error) {
	if cfg.Dir == "" && cfg.Usage == nil {
		return nil, errors.New("notify: Config.Dir is empty")
	}
	if cfg.Poll < 0 {
		return nil, fmt.Errorf("notify: Config.Poll is %v", cfg.Poll)
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
		return nil, fmt.Errorf("notify: memory in use: %w", err)
	}
	return &Notifier{cfg: cfg, changed: make(chan struct{}, 1)}, nil
}

// Update sets the levels, in bytes in use.
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

// look reads the use, and reports whether it exceeds a level that it did not.
func (n *Notifier) look() (bool, error) {
	used, err := n.cfg.Usage()
	if err != nil {
		return false, fmt.Errorf("notify: memory in use: %w", err)
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

// poll looks each period.
func (n *Notifier) poll(ctx context.Context, low func()) error {
	ticker := time.NewTicker(n.cfg.Poll)
	defer ticker.Stop()
	failed := 0
	for {
		switch rising, err := n.look(); {
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

// maxFailures is how often the use may not be readable, one time after the
// other: the group may be made anew.
const maxFailures = 20

// usageIn returns how the use of a group is read.
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
			return 0, fmt.Errorf("%s is no control group with memory: %w", dir, os.ErrNotExist)
		}
		return machine("/proc/meminfo")
	}
}

// machine is what is in use on the whole machine.
func machine(meminfo string) (int64, error) {
	text, err := os.ReadFile(meminfo)
	if err != nil {
		return 0, err
	}
	total, free := int64(-1), int64(-1)
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		n, err := strconv.ParseInt(words[1], 10, 53)
		if err != nil {
			continue
		}
		switch words[0] {
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
