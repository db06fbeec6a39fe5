package podsource

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A watch reports possible changes at a path. Changes may occur without a notification.
//
// Two directories are watched: the parent of the path, to detect that it is created, removed or
// replaced, and the path itself if it is a directory.
type watch struct {
	path     string
	notifier *fsnotify.Watcher // nil if it could not be created

	// dir is the directory that is watched as path; nil if none is. If it is replaced, the
	// watch must be added again.
	dir fs.FileInfo

	// link: path is a symbolic link, whose target may change with other files of its
	// directory (as in a mounted ConfigMap).
	link bool
	// removed are the files whose removal was notified since takeRemoved was called.
	removed map[string]bool
}

// exactRemovals: a removal is notified only for a file that was unlinked or renamed,
// and not for one that another was renamed over, as kqueue does.
const exactRemovals = runtime.GOOS == "linux"

func newWatch(path string) *watch { return &watch{path: path} }

func (w *watch) close() {
	if w.notifier != nil {
		// Its goroutine returns also if Close fails.
		_ = w.notifier.Close()
	}
}

// ensure adds watches for the directories that exist now. On error, changes may not be notified. It is
// idempotent.
func (w *watch) ensure() error {
	if w.notifier == nil {
		n, err := fsnotify.NewWatcher()
		if err != nil {
			return err
		}
		w.notifier = n
	}
	if info, err := os.Lstat(w.path); err == nil {
		w.link = info.Mode()&fs.ModeSymlink != 0
	}
	if err := w.notifier.Add(filepath.Dir(w.path)); err != nil {
		return err
	}
	info, err := os.Stat(w.path)
	if err != nil || !info.IsDir() {
		w.dir = nil
		return nil // its creation is notified by the parent
	}
	if w.dir != nil && !os.SameFile(w.dir, info) {
		// Fails if the old directory was removed, which has removed its watch.
		_ = w.notifier.Remove(w.path)
	}
	w.dir = info
	return w.notifier.Add(w.path)
}

// wait returns true after limit, or a duration collect after a notification, since these come in
// bursts. It returns false if ctx is done.
func (w *watch) wait(ctx context.Context, limit, collect time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var events chan fsnotify.Event
	var errs chan error
	if w.notifier != nil {
		events, errs = w.notifier.Events, w.notifier.Errors
	}
	deadline := time.Now().Add(limit)
	hasten := func() {
		// Never later than before, so that a path under constant change is read.
		if soon := time.Now().Add(collect); soon.Before(deadline) {
			deadline = soon
			timer.Reset(collect)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case e, open := <-events:
			if !open {
				events = nil
			} else if w.concerns(e.Name) {
				w.recordRemoval(e)
				hasten()
			}
		case _, open := <-errs:
			if !open {
				errs = nil
				continue
			}
			// Notifications were lost.
			hasten()
		}
	}
}

// note records e if it is the removal of a file.
func (w *watch) recordRemoval(e fsnotify.Event) {
	if !exactRemovals || !e.Has(fsnotify.Remove) && !e.Has(fsnotify.Rename) {
		return
	}
	if w.removed == nil {
		w.removed = make(map[string]bool)
	}
	w.removed[e.Name] = true
}

// takeRemoved returns the files whose removal was notified since the last call. Some
// may exist again.
func (w *watch) takeRemoved() map[string]bool {
	removed := w.removed
	w.removed = nil
	return removed
}

// concerns reports whether a change of the named file may be one of the path.
func (w *watch) concerns(name string) bool {
	return w.link || name == w.path || filepath.Dir(name) == w.path
}
