package register

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// collect is the time for which notifications are collected: a plugin creates its socket shortly before
// it listens.
const collect = 20 * time.Millisecond

// Run inspects the directory at once and whenever something changes in it, until ctx
// is done, and returns nil. A second call returns an error.
func (w *Watcher) Run(ctx context.Context) error {
	if err := w.ran.Enter("register: Watcher"); err != nil {
		return err
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		w.cfg.Logger.Warn("Failed to watch plugin directory; polling it", "dir", w.cfg.Dir, "err", err)
		watcher = new(fsnotify.Watcher) // its nil channels block
	} else {
		defer watcher.Close()
	}
	defer w.tasks.Wait()
	for {
		if mkdir := os.MkdirAll(w.cfg.Dir, 0o750); mkdir != nil {
			w.cfg.Logger.Warn("Failed to create plugin directory; will retry", "dir", w.cfg.Dir, "err", mkdir)
		}
		if err == nil {
			w.watch(watcher) // before the read, so that no change is missed
		}
		retryAt, lookErr := w.scan(ctx)
		if lookErr != nil {
			w.cfg.Logger.Warn("Failed to read plugin directory; will retry", "dir", w.cfg.Dir, "err", lookErr)
		}
		next := w.cfg.Period
		if !retryAt.IsZero() {
			next = min(next, max(time.Until(retryAt), 0))
		}
		if !w.wait(ctx, watcher, next) {
			return nil
		}
	}
}

func (w *Watcher) watch(watcher *fsnotify.Watcher) {
	_ = filepath.WalkDir(w.cfg.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return nil
		}
		if path != w.cfg.Dir && strings.HasPrefix(e.Name(), ".") {
			return fs.SkipDir
		}
		if err := watcher.Add(path); err != nil {
			w.cfg.Logger.Debug("Failed to watch directory, polling it", "dir", path, "err", err)
		}
		return nil
	})
}

// wait returns true when the directory must be read again, and false when ctx is done.
func (w *Watcher) wait(ctx context.Context, watcher *fsnotify.Watcher, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	hastened := false
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-w.ended:
			return true
		case <-watcher.Events:
		case <-watcher.Errors: // notifications were lost
		}
		if !hastened { // never later than before, however much changes
			hastened = true
			timer.Reset(min(collect, limit))
		}
	}
}
