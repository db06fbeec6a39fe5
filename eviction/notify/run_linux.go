package notify

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// Run calls low each time that more is used than a level, until ctx ends (nil), or
// the use cannot be read.
func (n *Notifier) Run(ctx context.Context, low func()) error {
	if n.cfg.Dir == "" {
		return n.poll(ctx, low)
	}
	if _, err := os.Stat(filepath.Join(n.cfg.Dir, "cgroup.event_control")); err == nil {
		err := n.events(ctx, low)
		if ctx.Err() != nil {
			return nil
		}
		n.cfg.Logger.Warn("the kernel does not tell when memory runs low; it is looked at", "dir", n.cfg.Dir, "err", err)
		return n.poll(ctx, low)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	wg.Go(func() {
		if err := n.distress(ctx, low); err != nil && ctx.Err() == nil && !errors.Is(err, os.ErrNotExist) {
			n.cfg.Logger.Info("the kernel does not tell of distress for memory; it is looked at only", "dir", n.cfg.Dir, "err", err)
		}
	})
	return n.poll(ctx, low)
}
