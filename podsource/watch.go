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

// A watch tells that something may have changed at a path. What it says is a
// hint to look again; that it says nothing proves nothing.
//
// Two directories are watched: the one that the path is in, to see it come, go
// and be exchanged, and the path itself if it is a directory.
type watch struct {
	path     string
	notifier *fsnotify.Watcher // nil: none could be made

	// dir is the directory that is watched as path; nil if none is. Another
	// directory that takes its place has to be watched anew.
	dir fs.FileInfo

	// link: path is a link, so that what it leads to changes when others in
	// its directory do (as in a mounted ConfigMap).
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
		// Nothing to do about a failure: its goroutine ends in any case.
		_ = w.notifier.Close()
	}
}

// ensure sees to it that the directories which there are now are watched. On
// error, changes may go unnoticed. It may be called any number of times.
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
		return nil // its coming is seen in the directory above
	}
	if w.dir != nil && !os.SameFile(w.dir, info) {
		// Fails if the old directory is gone, which is as good.
		_ = w.notifier.Remove(w.path)
	}
	w.dir = info
	return w.notifier.Add(w.path)
}

// wait returns true after the given time, or a while after something happened
// at the path: notifications come in swarms. It returns false when ctx ends.
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
		// Never later than before: a path under constant change is looked
		// at all the same.
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
			// Notifications were lost, so anything may have happened.
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
