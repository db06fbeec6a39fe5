package notify

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// Run calls low each time the usage exceeds a level. It blocks until ctx is done and returns
// nil, or returns an error if the usage cannot be read. A second call returns an error.
func (n *Notifier) Run(ctx context.Context, low func()) error {
	if err := n.ran.Enter("notify: Notifier"); err != nil {
		return err
	}
	if n.cfg.Dir == "" {
		return n.poll(ctx, low)
	}
	if _, err := os.Stat(filepath.Join(n.cfg.Dir, "cgroup.event_control")); err == nil {
		err := n.waitEvents(ctx, low)
		if ctx.Err() != nil {
			return nil
		}
		n.cfg.Logger.Warn("Failed to watch memory usage events; falling back to polling", "dir", n.cfg.Dir, "err", err)
		return n.poll(ctx, low)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	wg.Go(func() {
		if err := n.waitPressure(ctx, low); err != nil && ctx.Err() == nil && !errors.Is(err, os.ErrNotExist) {
			n.cfg.Logger.Info("Failed to watch memory pressure events; memory usage is only polled", "dir", n.cfg.Dir, "err", err)
		}
	})
	return n.poll(ctx, low)
}
