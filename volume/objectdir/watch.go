package objectdir

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// maxSettles bounds the number of delays by Config.Settle while the directory changes constantly.
const maxSettles = 5

// Run reads the directory at once and whenever it changes, until ctx is done, and
// returns nil. Read errors are reported as Problems and retried. A second call
// returns an error.
func (d *Dir) Run(ctx context.Context) error {
	if err := d.ran.Enter("objectdir: Dir"); err != nil {
		return err
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		d.cfg.Logger.Warn("Failed to watch directory; polling it", "path", d.cfg.Dir, "err", err)
		watcher = &fsnotify.Watcher{} // its nil channels block
	} else {
		defer watcher.Close()
	}
	for {
		if err == nil {
			d.watch(watcher) // before the read, so that no change is missed
		}
		_ = d.Read() // reported as a Problem
		if !d.wait(ctx, watcher) {
			return nil
		}
	}
}

// watch watches the directory, its subdirectories, and its parent, in which it may be replaced. Adding a
// directory twice is not an error.
func (d *Dir) watch(w *fsnotify.Watcher) {
	_ = w.Add(filepath.Dir(d.cfg.Dir))
	root := d.cfg.Dir
	_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		info, err := os.Stat(path) // follows symbolic links
		if err != nil || !info.IsDir() {
			return nil
		}
		if path != root && strings.HasPrefix(e.Name(), ".") && e.IsDir() {
			return fs.SkipDir
		}
		if err := w.Add(path); err != nil {
			d.cfg.Logger.Debug("Failed to watch directory, polling it", "path", path, "err", err)
		}
		return nil
	})
}

// wait returns true when the directory must be read again, and false when ctx is done.
func (d *Dir) wait(ctx context.Context, w *fsnotify.Watcher) bool {
	timer := time.NewTimer(d.cfg.Period)
	defer timer.Stop()
	for settles := 0; ; {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case e := <-w.Events:
			if !d.concerns(e.Name) {
				continue
			}
		case <-w.Errors: // notifications were lost
		}
		if settles < maxSettles {
			timer.Reset(d.cfg.Settle)
			settles++
		}
	}
}

func (d *Dir) concerns(path string) bool {
	rel, err := filepath.Rel(d.cfg.Dir, path)
	return err == nil && filepath.IsLocal(rel)
}
