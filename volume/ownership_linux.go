package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubeparts/kubeparts/internal/untrusted"
)

// ownershipProgressPeriod is the period of ownership.progress.
const ownershipProgressPeriod = 30 * time.Second

// setOwnership changes the group and modes of dir and everything below it. It returns an error if a
// directory cannot be read or ctx is done; files that cannot be changed are skipped. Files that
// already have the group and mode are not written, so a canceled call can be repeated cheaply. The
// root is changed last, so that onlyOnMismatch detects an incomplete change.
//
// Symbolic links are changed but not followed, including links created concurrently. File systems
// mounted below dir are skipped.
func setOwnership(ctx context.Context, dir string, o ownership) error {
	root, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOTDIR) {
		return fmt.Errorf("volume: own %s: not a directory", dir)
	}
	if err != nil {
		return fmt.Errorf("volume: own %s: %w", dir, err)
	}
	defer unix.Close(root)
	var st unix.Stat_t
	if err := unix.Fstat(root, &st); err != nil {
		return fmt.Errorf("volume: own %s: %w", dir, err)
	}
	w := &owner{ownership: o, ctx: ctx, root: root, device: st.Dev, dir: dir, begun: time.Now()}
	if o.onlyOnMismatch && w.right(&st) { // vol-66
		return nil
	}
	if err := w.walk(); err != nil {
		return fmt.Errorf("volume: own %s: %w", dir, err)
	}
	return nil
}

// An owner is one call of setOwnership. Workers read directories; a directory is changed after
// everything below it.
type owner struct {
	ownership
	ctx    context.Context //nolint:containedctx // of one call
	root   int
	device uint64
	dir    string
	begun  time.Time

	visited, changed atomic.Int64

	// mu guards the fields below; more signals a change of them to the workers.
	mu    sync.Mutex
	more  sync.Cond
	queue []*ownedDir
	open  int // directories that are queued or being read
	err   error
}

// An ownedDir is a directory in progress.
type ownedDir struct {
	parent *ownedDir
	path   string       // relative to the root; "" for the root
	left   atomic.Int64 // entries below that are not changed yet
}

func (w *owner) walk() error {
	w.more.L = &w.mu
	top := &ownedDir{}
	w.add(top)
	stop := context.AfterFunc(w.ctx, func() { w.fail(w.ctx.Err()) })
	defer stop()
	stopProgress := w.reportProgress()
	defer stopProgress()
	var wg sync.WaitGroup
	for range min(4*runtime.GOMAXPROCS(0), 64) {
		wg.Go(w.work)
	}
	wg.Wait()
	w.mu.Lock()
	defer w.mu.Unlock() // AfterFunc may still run
	return w.err
}

// reportProgress calls progress periodically until stop is called.
func (w *owner) reportProgress() (stop func()) {
	if w.progress == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(ownershipProgressPeriod)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				w.progress(w.visited.Load(), w.changed.Load(), time.Since(w.begun))
			}
		}
	}()
	return func() { close(done); <-ended }
}

func (w *owner) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	w.more.Broadcast()
}

func (w *owner) add(dirs ...*ownedDir) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, dirs...)
	w.open += len(dirs)
	w.more.Broadcast()
}

// take blocks until there is a directory to read and returns it; nil means that all are done or the
// walk failed. The most recent one is first, which bounds the queue.
func (w *owner) take() *ownedDir {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.err == nil && w.open > 0 && len(w.queue) == 0 {
		w.more.Wait()
	}
	if w.err != nil || w.open == 0 {
		return nil
	}
	last := len(w.queue) - 1
	d := w.queue[last]
	w.queue = w.queue[:last]
	return d
}

func (w *owner) work() {
	for d := w.take(); d != nil; d = w.take() {
		if err := w.read(d); err != nil {
			w.fail(err)
			return
		}
		w.mu.Lock()
		if w.open--; w.open == 0 {
			w.more.Broadcast()
		}
		w.mu.Unlock()
	}
}

// read changes the files of a directory and queues its subdirectories.
func (w *owner) read(d *ownedDir) error {
	fd, err := w.openDir(d.path)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		w.done(d) // it was removed or replaced concurrently
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", d.path, err)
	}
	f := os.NewFile(uintptr(fd), d.path)
	defer f.Close()
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil && st.Dev != w.device {
		w.done(d) // another file system is mounted there
		return nil
	}
	d.left.Store(1) // this one, until all entries are queued
	for {
		entries, readErr := f.ReadDir(1024)
		var below []*ownedDir
		for _, e := range entries {
			if w.ctx.Err() != nil {
				return w.ctx.Err()
			}
			if e.IsDir() {
				below = append(below, &ownedDir{parent: d, path: join(d.path, e.Name())})
				continue
			}
			w.change(fd, e.Name())
		}
		if len(below) > 0 {
			d.left.Add(int64(len(below)))
			w.add(below...)
		}
		if readErr != nil && !errors.Is(readErr, io.EOF) {
			return fmt.Errorf("%s: %w", d.path, readErr)
		}
		if len(entries) == 0 {
			break
		}
	}
	w.done(d)
	return nil
}

// done changes the directory if everything below it is changed, and then its parents likewise.
func (w *owner) done(d *ownedDir) {
	for d != nil && (d.left.Add(-1) <= 0) {
		if d.path == "" {
			w.change(w.root, ".")
			return
		}
		if fd, name, err := w.openParent(d.path); err == nil {
			w.change(fd, name)
			unix.Close(fd)
		}
		d = d.parent
	}
}

// change sets the group and the mode of one entry, unless it has them.
func (w *owner) change(dir int, name string) {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Dev != w.device {
		return
	}
	w.visited.Add(1)
	if w.right(&st) {
		return
	}
	w.changed.Add(1)
	if int64(st.Gid) != w.group {
		_ = unix.Fchownat(dir, name, -1, int(w.group), unix.AT_SYMLINK_NOFOLLOW)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		untrusted.ChmodAt(dir, name, st.Mode&0o7777|w.mode(&st))
	}
}

// mode returns the permission bits that an entry must have at least (rule vol-65).
func (w *owner) mode(st *unix.Stat_t) uint32 {
	mode := uint32(0o660)
	if w.readOnly {
		mode = 0o440
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		mode |= unix.S_ISGID | 0o110
	case unix.S_IFLNK:
		return 0
	}
	return mode
}

func (w *owner) right(st *unix.Stat_t) bool {
	mode := w.mode(st)
	return int64(st.Gid) == w.group && st.Mode&mode == mode
}

// openDir opens a directory below the root without following symbolic links.
func (w *owner) openDir(path string) (int, error) {
	if path == "" {
		return unix.Openat(w.root, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	fd, name, err := w.openParent(path)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	return unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// openParent opens the directory that contains path, component by component, without following
// symbolic links.
func (w *owner) openParent(path string) (int, string, error) {
	at, err := unix.FcntlInt(uintptr(w.root), unix.F_DUPFD_CLOEXEC, 0)
	for err == nil {
		name, rest, more := strings.Cut(path, "/")
		if !more {
			return at, name, nil
		}
		var next int
		next, err = unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		unix.Close(at)
		at, path = next, rest
	}
	return -1, "", err
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
