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

// maxSettles bounds how long a directory under constant change isn't read.
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
		d.cfg.Logger.Warn("no notifications of changes", "path", d.cfg.Path, "err", err)
		watcher = &fsnotify.Watcher{} // whose channels are nil: nothing comes from them
	} else {
		defer watcher.Close()
	}
	for {
		if err == nil {
			d.watch(watcher) // before it is read, so that no change falls in between
		}
		_ = d.Read() // a Problem says it
		if !d.wait(ctx, watcher) {
			return nil
		}
	}
}

// watch watches the directory, those below it, and the one above, in which it may be
// exchanged. One that is watched already is no error, nor one that is gone.
func (d *Dir) watch(w *fsnotify.Watcher) {
	_ = w.Add(filepath.Dir(d.cfg.Path))
	root := d.cfg.Path
	_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		info, err := os.Stat(path) // of links, too
		if err != nil || !info.IsDir() {
			return nil
		}
		if path != root && strings.HasPrefix(e.Name(), ".") && e.IsDir() {
			return fs.SkipDir
		}
		if err := w.Add(path); err != nil {
			d.cfg.Logger.Debug("not watched", "path", path, "err", err)
		}
		return nil
	})
}

// wait returns true when it is time for another look, and false when ctx ends.
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
		case <-w.Errors: // notifications were lost: anything may have happened
		}
		if settles < maxSettles {
			timer.Reset(d.cfg.Settle)
			settles++
		}
	}
}

func (d *Dir) concerns(path string) bool {
	rel, err := filepath.Rel(d.cfg.Path, path)
	return err == nil && filepath.IsLocal(rel)
}
