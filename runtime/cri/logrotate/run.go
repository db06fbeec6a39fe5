package logrotate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// A tail is the state of one log in Run.
type tail struct {
	id, path string
	last     logSize
	due      time.Time
	busy     bool          // a worker rotates it
	rest     time.Duration // until the next check, set by the worker
	listen   bool          // the next check begins to watch the file for a write
	watched  bool          // the file is watched
}

// Run rotates logs until ctx is done. It returns nil after its goroutines have
// returned. Errors are logged and the rotation is retried. A second call returns an
// error.
func (r *Rotator) Run(ctx context.Context) error {
	if err := r.ran.Enter("logrotate: Rotator"); err != nil {
		return err
	}
	if r.cfg.MaxSize < 0 {
		<-ctx.Done()
		return nil
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	full, rotated, zip := make(chan *tail), make(chan *tail), make(chan string)
	for range r.cfg.Workers {
		wg.Go(func() { r.work(ctx, full, rotated) })
	}
	wg.Go(func() { r.tidyAll(ctx, zip) })
	w := newWatcher()
	defer w.close()
	wg.Go(w.run)

	tails := map[string]*tail{}
	var queue []*tail   // full logs that wait for a worker
	var untidy []string // logs whose rotated files wait to be pruned and compressed
	list := time.Now()
	for {
		now := time.Now()
		if !now.Before(list) {
			untidy = append(untidy, r.relist(ctx, tails, now)...)
			list = now.Add(r.cfg.Period)
		}
		wake := list
		for id, t := range tails {
			if t.busy {
				continue
			}
			if !now.Before(t.due) {
				switch isFull, err := r.check(t, now, w); {
				case err != nil:
					r.cfg.Logger.Warn("Failed to check log size; retrying after the period", "containerID", id, "path", t.path, "err", err)
					t.due = now.Add(r.cfg.Period)
				case isFull:
					t.busy = true
					queue = append(queue, t)
					continue
				}
			}
			if t.due.Before(wake) {
				wake = t.due
			}
		}
		var to chan *tail
		var first *tail
		if len(queue) > 0 {
			to, first = full, queue[0]
		}
		var toTidy chan string
		var log string
		if len(untidy) > 0 {
			toTidy, log = zip, untidy[0]
		}
		timer := time.NewTimer(time.Until(wake))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		case to <- first:
			queue = queue[1:]
		case toTidy <- log:
			untidy = untidy[1:]
		case t := <-rotated:
			if !slices.Contains(untidy, t.path) {
				untidy = append(untidy, t.path)
			}
			t.busy, t.watched, t.last, t.due = false, false, logSize{}, time.Now().Add(t.rest)
		case path := <-w.written:
			for _, t := range tails {
				if t.path == path {
					t.watched, t.due = false, time.Time{}
				}
			}
		}
		timer.Stop()
	}
}

// relist adds new running containers and deletes those that do not run. It returns the logs of the new
// ones: an earlier agent may have left rotated files that are not compressed, or too many.
func (r *Rotator) relist(ctx context.Context, tails map[string]*tail, now time.Time) (added []string) {
	running, err := r.running(ctx)
	if err != nil {
		if ctx.Err() == nil {
			r.cfg.Logger.Warn("Failed to list containers; logs of new containers are not rotated", "err", err)
		}
		return nil
	}
	for id := range tails {
		if !running[id] {
			delete(tails, id)
		}
	}
	for id := range running {
		if tails[id] != nil {
			continue
		}
		path, err := r.cfg.Runtime.LogPath(ctx, id)
		if err != nil {
			if ignore(err) != nil && ctx.Err() == nil {
				r.cfg.Logger.Warn("Failed to get log path; the log is not rotated", "containerID", id, "err", err)
			}
			continue
		}
		tails[id] = &tail{id: id, path: path, due: now}
		added = append(added, path)
	}
	return added
}

// check reports whether a worker must handle the log, and sets the time of the next
// check.
func (r *Rotator) check(t *tail, now time.Time, w *watcher) (bool, error) {
	// Watch before reading the size, so that no write is missed.
	t.watched = t.watched || t.listen && w.listen(t.path)
	t.listen = false
	info, err := os.Stat(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil // a worker makes the runtime reopen it
	}
	if err != nil {
		return false, err
	}
	seen := logSize{now, info.Size()}
	quiet := seen.size == t.last.size
	if !quiet {
		t.watched = false // the watch has fired, or is of a file that was replaced
	}
	in, listen := next(t.last, seen, r.cfg.MaxSize, r.cfg.Period)
	if in == 0 {
		return true, nil
	}
	t.last = seen
	switch {
	case t.watched && quiet:
		in = r.cfg.Period // a write is notified
	case listen && w.works():
		t.listen = true
	case listen:
		in = min(idlePause, r.cfg.Period)
	}
	t.due = now.Add(in)
	return false, nil
}

func (r *Rotator) work(ctx context.Context, full <-chan *tail, rotated chan<- *tail) {
	for {
		var t *tail
		select {
		case <-ctx.Done():
			return
		case t = <-full:
		}
		size, err := r.size(ctx, t.id, t.path)
		if err == nil && size >= r.cfg.MaxSize {
			err = r.rotate(ctx, t.id, t.path, size)
		}
		t.rest = 0
		if err != nil && r.gone(t) {
			t.rest = r.cfg.Period // the next relist removes it
			err = nil
		}
		if err != nil && ctx.Err() == nil && r.ended(ctx, t.id) {
			r.cfg.Logger.Debug("Log of terminated container not rotated", "containerID", t.id, "path", t.path, "err", err)
			t.rest = r.cfg.Period
		} else if err != nil && ctx.Err() == nil {
			r.cfg.Logger.Warn("Failed to rotate log; retrying after the period", "containerID", t.id, "path", t.path, "err", err)
			t.rest = r.cfg.Period // limits the retries
		}
		select {
		case <-ctx.Done():
			return
		case rotated <- t:
		}
	}
}

// gone reports whether the log directory of the container was removed since the
// container was listed.
func (r *Rotator) gone(t *tail) bool {
	_, err := os.Stat(filepath.Dir(t.path))
	return errors.Is(err, fs.ErrNotExist)
}

// ended reports whether the container does not run any more.
func (r *Rotator) ended(ctx context.Context, id string) bool {
	running, err := r.running(ctx)
	return err == nil && !running[id]
}

func (r *Rotator) tidyAll(ctx context.Context, zip <-chan string) {
	for {
		select {
		case <-ctx.Done():
			return
		case path := <-zip:
			if err := r.tidy(ctx, path, r.cfg.CPUShare); err != nil && ctx.Err() == nil && !errors.Is(err, fs.ErrNotExist) {
				r.cfg.Logger.Warn("Failed to compress rotated log; retrying after the next rotation", "path", path, "err", fmt.Errorf("logrotate: %w", err))
			}
		}
	}
}
