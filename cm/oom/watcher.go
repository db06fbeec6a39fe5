package oom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/runtime"
)

// maxRecord is larger than any record of the kernel log.
const maxRecord = 8192

// ErrLost is returned by reads of Config.Kmsg if the kernel has overwritten records that
// were not read; the next read continues after them.
var ErrLost = errors.New("oom: records of the kernel's log were lost")

// Config configures a [Watcher].
type Config struct {
	// Kmsg opens the kernel log after its last record, for reads that return one record
	// each: [OpenKmsg]. A read may block; Close interrupts it. If nil, the kernel log is
	// not read.
	Kmsg func() (io.ReadCloser, error)

	// Cgroups has the numbers of killed processes: *cm.Manager. They are used if the kernel
	// log cannot be read. May be nil.
	Cgroups Cgroups

	// Period is the time between reads of Cgroups. Zero means 10 seconds.
	Period time.Duration

	// Handle is called for each kill. May be nil.
	Handle func(Kill)

	// Node is the object of events, and Record receives them: Warning SystemOOM. It must
	// not block. If nil, events are discarded.
	Node   v1.ObjectReference
	Record func(runtime.Event)

	// Logger. If nil, messages are discarded.
	Logger *slog.Logger
}

// Cgroups counts the processes that were killed in cgroups.
type Cgroups interface {
	// OOMKills returns the number of processes killed in each cgroup since its creation.
	OOMKills() (map[string]uint64, error)
}

// A Watcher reports processes that the OOM killer killed.
type Watcher struct {
	cfg Config
	ran runonce.Guard
}

// New returns a Watcher for cfg. It opens nothing.
func New(cfg Config) (*Watcher, error) {
	if cfg.Kmsg == nil && cfg.Cgroups == nil {
		return nil, errors.New("oom: Config.Kmsg and Config.Cgroups are nil: there is nothing to watch")
	}
	if cfg.Period < 0 {
		return nil, fmt.Errorf("oom: Config.Period is negative: %v", cfg.Period)
	}
	if cfg.Period == 0 {
		cfg.Period = 10 * time.Second
	}
	if cfg.Handle == nil {
		cfg.Handle = func(Kill) {}
	}
	if cfg.Record == nil {
		cfg.Record = func(runtime.Event) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Watcher{cfg: cfg}, nil
}

// Run watches until ctx is done, and returns nil. It returns an error if the kernel
// log cannot be opened and there are no counters (oom-1), if the log has ended, and
// if it is called a second time.
func (w *Watcher) Run(ctx context.Context) error {
	if err := w.ran.Enter("oom: Watcher"); err != nil {
		return err
	}
	if w.cfg.Kmsg == nil {
		return w.count(ctx)
	}
	log, err := w.cfg.Kmsg()
	if err == nil {
		return w.read(ctx, log)
	}
	if w.cfg.Cgroups == nil {
		return fmt.Errorf("oom: open the kernel's log: %w", err)
	}
	w.cfg.Logger.Warn("Failed to open the kernel log; reading the counters of cgroups instead", "err", err)
	return w.count(ctx)
}

func (w *Watcher) read(ctx context.Context, log io.ReadCloser) error {
	var once sync.Once
	end := func() { once.Do(func() { _ = log.Close() }) } // opened for reading only
	stop := context.AfterFunc(ctx, end)
	defer func() { stop(); end() }()
	var p Parser
	buf := make([]byte, maxRecord)
	for {
		n, err := log.Read(buf)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrLost):
			w.cfg.Logger.Warn("Records of the kernel log were lost; OOM kills may be missing")
			p = Parser{}
			continue
		case err != nil:
			return fmt.Errorf("oom: read the kernel's log: %w", err)
		}
		if _, text, ok := parseRecord(buf[:n]); ok {
			if k, ok := p.Line(text); ok {
				w.report(k)
			}
		}
	}
}

// report calls Handle, and records an event if the machine was out of memory.
func (w *Watcher) report(k Kill) {
	w.cfg.Handle(k)
	if !k.System() {
		return
	}
	message := "System OOM encountered"
	if k.Process != "" && k.PID != 0 {
		message += fmt.Sprintf(", victim process: %s, pid: %d", k.Process, k.PID)
	}
	w.cfg.Record(runtime.Event{Object: w.cfg.Node, Type: v1.EventTypeWarning, Reason: "SystemOOM", Message: message})
}

func (w *Watcher) count(ctx context.Context) error {
	tick := time.NewTicker(w.cfg.Period)
	defer tick.Stop()
	var last map[string]uint64
	for {
		now, err := w.cfg.Cgroups.OOMKills()
		if err != nil {
			w.cfg.Logger.Warn("Failed to read the counters of cgroups; will retry", "err", err)
		} else {
			if last != nil {
				for _, k := range newKills(last, now) {
					w.report(k)
				}
			}
			last = now
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
