package logrotate

import (
	"bytes"
	"encoding/binary"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// A watcher reports the next write to a file, once.
type watcher struct {
	written chan string
	closed  chan struct{}
	events  *os.File // nil if the limit of inotify instances is reached

	fd int
	// mu guards the field below.
	mu    sync.Mutex
	paths map[int32]string
}

func newWatcher() *watcher {
	w := &watcher{written: make(chan string), closed: make(chan struct{}), paths: map[int32]string{}}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err == nil {
		w.fd, w.events = fd, os.NewFile(uintptr(fd), "inotify")
	}
	return w
}

func (w *watcher) works() bool { return w.events != nil }

// listen watches a file for its next write. It reports whether that succeeded.
func (w *watcher) listen(path string) bool {
	if w.events == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	id, err := unix.InotifyAddWatch(w.fd, path, unix.IN_MODIFY|unix.IN_MOVE_SELF|unix.IN_ONESHOT)
	if err != nil {
		return false // the limit of watches is reached; the log is polled
	}
	w.paths[int32(id)] = path
	return true
}

func (w *watcher) close() {
	close(w.closed)
	if w.events != nil {
		_ = w.events.Close()
	}
}

// run sends the paths of written files to w.written until close.
func (w *watcher) run() {
	if w.events == nil {
		return
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := w.events.Read(buf)
		if err != nil {
			return
		}
		for rest := buf[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			var e unix.InotifyEvent
			_ = binary.Read(bytes.NewReader(rest[:unix.SizeofInotifyEvent]), binary.NativeEndian, &e)
			rest = rest[min(unix.SizeofInotifyEvent+int(e.Len), len(rest)):]
			w.mu.Lock()
			path, ok := w.paths[e.Wd]
			delete(w.paths, e.Wd)
			w.mu.Unlock()
			if !ok {
				continue
			}
			select {
			case w.written <- path:
			case <-w.closed:
				return
			}
		}
	}
}
