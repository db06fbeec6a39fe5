package logread

import (
	"context"
	"path/filepath"
	"time"

	"github.com/kubeparts/kubeparts/internal/pause"
)

// A follower waits for changes of a log.
type follower struct {
	changed chan struct{} // buffered, size 1
	stop    func()
	recheck time.Duration
	asked   time.Time
	ended   bool // the container has terminated
}

func (r *Reader) newFollower(req Request) *follower {
	f := &follower{changed: make(chan struct{}, 1), recheck: r.cfg.Recheck}
	stop, err := r.cfg.Watch(filepath.Dir(req.Path), func() {
		select {
		case f.changed <- struct{}{}:
		default:
		}
	})
	if err != nil {
		r.cfg.Logger.Warn("Failed to watch log directory; polling the log", "path", req.Path, "err", err)
		stop = func() {}
	}
	f.stop = stop
	return f
}

// wait blocks until a change, until d has passed, or until ctx is done.
func (f *follower) wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.changed:
	case <-timer.C:
	}
	return nil
}

// ask calls Request.Running and sets ended, at most once per recheck.
func (f *follower) ask(ctx context.Context, req Request) error {
	if req.Running == nil || f.ended || !f.asked.IsZero() && time.Since(f.asked) < f.recheck {
		return nil
	}
	f.asked = time.Now()
	running, err := req.Running(ctx)
	if err != nil && ctx.Err() == nil {
		return err
	}
	f.ended = err == nil && !running
	return nil
}

// follow reads from c on, including files created later. It closes the files.
func (d *reading) follow(ctx context.Context, f *follower, c *cursor) error {
	defer func() { c.s.close() }()
	for {
		ended := f.ended // if so, drain reads the rest
		if err := d.drain(ctx, c); err != nil {
			return err
		}
		next, err := d.rotated(ctx, f, c)
		if err != nil {
			return err
		}
		if next != nil {
			c = next
			continue
		}
		if ended {
			if err := c.finish(false); err != nil {
				return err
			}
			return d.out.flush()
		}
		if err := f.ask(ctx, d.req); err != nil {
			return err
		}
		if f.ended {
			continue
		}
		if err := f.wait(ctx, f.recheck); err != nil {
			return err
		}
	}
}

// drain prints the rest of a file that may grow.
func (d *reading) drain(ctx context.Context, c *cursor) error {
	if err := c.copy(ctx); err != nil {
		return err
	}
	if err := d.out.flush(); err != nil {
		return err
	}
	if c.s.gz {
		return nil
	}
	info, err := c.s.file.Stat()
	if err != nil || info.Size() >= c.scan.at+int64(c.scan.to-c.scan.from) {
		return err
	}
	c.scan.rest()
	fresh, err := d.cursor(c.s, nil, false)
	if err != nil {
		return err
	}
	*c = *fresh
	return d.gap(ErrTruncated)
}

// rotated returns a cursor for the live file if c's file was rotated and has been
// read to its end; otherwise nil. It prints the files between them.
func (d *reading) rotated(ctx context.Context, f *follower, c *cursor) (*cursor, error) {
	if same, there := c.s.is(d.req.Path); same || !there {
		return nil, nil // if missing, the runtime has not created it yet
	}
	if err := d.settle(ctx, c); err != nil {
		return nil, err
	}
	segments, err := d.r.list(ctx, d.req.Path)
	if err != nil {
		return nil, err
	}
	later, sure := after(c.s, segments)
	unused := segments[:len(segments)-len(later)]
	closeAll(unused)
	if len(later) == 0 {
		return nil, nil // the rotation was undone
	}
	defer func() { closeAll(later) }()
	if err := c.finish(true); err != nil {
		return nil, err
	}
	if !sure && !d.r.cfg.LiveOnly {
		if err := d.gap(ErrRemoved); err != nil {
			return nil, err
		}
	}
	for i, s := range later {
		next, err := d.cursor(s, nil, false)
		if err != nil {
			return nil, err
		}
		if i == len(later)-1 {
			later = later[:i]
			c.s.close()
			return next, nil
		}
		if err := next.copy(ctx); err != nil {
			return nil, err
		}
		if err := next.finish(true); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// settle prints the lines that are still written to a renamed file, until none was written for
// Config.Settle. A file with a newer rotated file is complete.
func (d *reading) settle(ctx context.Context, c *cursor) error {
	names, err := d.r.rotated(d.req.Path)
	if err != nil {
		return err
	}
	since := max(c.s.stamp, c.s.known)
	newer := 0
	for _, name := range names {
		if name > since {
			newer++
		}
	}
	if newer > 1 || newer == 1 && c.s.stamp != "" {
		return d.drain(ctx, c)
	}
	const steps = 4
	for quiet := 0; quiet < steps; quiet++ {
		before := c.scan.at + int64(c.scan.to-c.scan.from)
		if err := d.drain(ctx, c); err != nil {
			return err
		}
		if c.scan.at+int64(c.scan.to-c.scan.from) > before {
			quiet = -1
		}
		if err := pause.For(ctx, d.r.cfg.Settle/steps); err != nil {
			return err
		}
	}
	return d.drain(ctx, c)
}
