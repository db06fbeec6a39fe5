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

// maxRecord is more than a record of the kernel's log may have.
const maxRecord = 8192

// ErrLost says that the kernel has written over records that were not read yet; the
// next Read goes on behind them. It is no failure.
var ErrLost = errors.New("oom: records of the kernel's log were lost")

// Config configures a [Watcher].
type Config struct {
	// Kmsg opens the kernel's log behind its last record, for reads that return
	// one record each: [OpenKmsg]. A read may block; Close ends it. Nil: it is not
	// looked at.
	Kmsg func() (io.ReadCloser, error)

	// Counters returns how many processes have been killed in each cgroup since
	// it was made. It is used where the log can't be. Nil: nobody counts.
	Counters func() (map[string]uint64, error)

	// Period between looks at Counters. Zero: 10 seconds.
	Period time.Duration

	// Handle takes each kill. Nil: nobody does.
	Handle func(Kill)

	// Node is whom events are about, and Record takes them: Warning SystemOOM. It
	// must not block. Nil: nobody reads them.
	Node   v1.ObjectReference
	Record func(runtime.Event)

	// Logger, nil discards.
	Logger *slog.Logger
}

// A Watcher tells of processes that the kernel has killed.
type Watcher struct {
	cfg Config
	ran runonce.Guard
}

// New returns a Watcher for cfg. It opens nothing.
func New(cfg Config) (*Watcher, error) {
	if cfg.Kmsg == nil && cfg.Counters == nil {
		return nil, errors.New("oom: Config.Kmsg and Config.Counters are nil: there is nothing to watch")
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
	if w.cfg.Counters == nil {
		return fmt.Errorf("oom: open the kernel's log: %w", err)
	}
	w.cfg.Logger.Warn("the kernel's log can't be read; counters of cgroups are looked at", "err", err)
	return w.count(ctx)
}

func (w *Watcher) read(ctx context.Context, log io.ReadCloser) error {
	var once sync.Once
	end := func() { once.Do(func() { _ = log.Close() }) } // it was only read
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
			w.cfg.Logger.Warn("records of the kernel's log were lost")
			p = Parser{}
			continue
		case err != nil:
			return fmt.Errorf("oom: read the kernel's log: %w", err)
		}
		if _, text, ok := parseRecord(buf[:n]); ok {
			if k, ok := p.Line(text); ok {
				w.told(k)
			}
		}
	}
}

// told hands a kill on; of the node as a whole there is an event (oom-2).
func (w *Watcher) told(k Kill) {
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
		now, err := w.cfg.Counters()
		if err != nil {
			w.cfg.Logger.Warn("counters of cgroups can't be read", "err", err)
		} else {
			if last != nil {
				for _, k := range newKills(last, now) {
					w.told(k)
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
