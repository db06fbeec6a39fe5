package fakecri

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// A logFile is the log of a running container. It has a timer while there are further lines,
// and no goroutine; the file is open only during writes. So output after a rename goes to
// the new file, whereas a real runtime writes to the old one until ReopenContainerLog. If
// the container exits before the file exists, the output is lost.
type logFile struct {
	path  string
	start time.Time

	mu     sync.Mutex // guards the fields below; only files are touched with it
	output fake.Output
	timer  *time.Timer
	broken bool // a write failed and was logged
	over   bool
}

// beginLocked is called when a container starts. The caller must hold r.mu.
func (r *Runtime) beginLocked(c *container) {
	r.openLog(c)
	r.serve(c)
}

// ceaseLocked is called when a container exits, before its state changes. The caller must
// hold r.mu.
func (r *Runtime) ceaseLocked(c *container) {
	now := time.Now()
	c.sandbox.cpuUsed = min(c.sandbox.cpuUsed+c.cpuLocked(now), math.MaxInt64)
	if c.log != nil {
		c.log.end(r, now)
		c.log = nil
	}
	if c.serving != nil {
		c.serving.end()
		c.serving = nil
	}
}

// openLog creates the file and missing directories when the container starts, also if it
// never prints.
func (r *Runtime) openLog(c *container) {
	path := c.logPath()
	if !r.cfg.WriteLogs || path == "" {
		return
	}
	l := &logFile{path: path, start: time.Unix(0, c.started), output: c.behavior.Output()}
	l.mu.Lock()
	defer l.mu.Unlock()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = l.makeLocked()
	}
	if err != nil {
		r.log.Warn("Failed to create container log", "containerID", c.id, "err", err)
		return
	}
	c.log = l
	l.writeLocked(r, time.Now())
}

func (l *logFile) makeLocked() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return err
	}
	return f.Close()
}

// writeLocked writes the lines that are due, and sets the timer for the next one. If the file
// was renamed, they are kept until ReopenContainerLog creates the new one.
func (l *logFile) writeLocked(r *Runtime, now time.Time) {
	var text []byte
	after := l.output
	var wait time.Duration
	more := false
	for {
		var at time.Duration
		if at, more = after.Next(); !more {
			break
		}
		if wait = l.start.Add(at).Sub(now); wait > 0 {
			break
		}
		line, stderr := after.Print()
		text = appendLogEntries(text, l.start.Add(at), stderr, line)
	}
	if len(text) > 0 {
		if err := l.append(text); os.IsNotExist(err) && !l.over {
			more = false // continued by reopen
		} else {
			l.output = after
			if err != nil && !l.broken {
				l.broken = true
				r.log.Warn("Failed to write container log", "path", l.path, "err", err)
			}
		}
	}
	switch {
	case l.over || !more:
		l.stopLocked()
	case l.timer == nil:
		l.timer = time.AfterFunc(wait, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if !l.over {
				l.writeLocked(r, time.Now())
			}
		})
	default:
		l.timer.Reset(wait)
	}
}

func (l *logFile) append(text []byte) error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if also := f.Close(); err == nil {
		err = also
	}
	return err
}

func (l *logFile) stopLocked() {
	if l.timer != nil {
		l.timer.Stop()
	}
}

// end writes the output until the exit of the container.
func (l *logFile) end(r *Runtime, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.writeLocked(r, now)
}

// reopen creates a new file, after the old one was renamed.
func (l *logFile) reopen(r *Runtime, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return nil
	}
	if err := l.makeLocked(); err != nil {
		return err
	}
	l.writeLocked(r, now)
	return nil
}

// reopenLocked creates a new log file.
func (r *Runtime) reopenLocked(c *container) error {
	if c.log == nil {
		return nil
	}
	if err := c.log.reopen(r, time.Now()); err != nil {
		return refused("reopen log of container %s: %v", c.id, err)
	}
	return nil
}

// follow calls emit for each line that a running container prints from now on, until it
// exits, ctx is done, or emit fails. It calls emit on the caller's goroutine, without locks.
func (r *Runtime) follow(ctx context.Context, c *container, emit func(at time.Time, line string, stderr bool) error) error {
	r.mu.Lock()
	if !c.running() {
		r.mu.Unlock()
		return nil
	}
	gone, start, output := c.goneLocked(), time.Unix(0, c.started), c.behavior.Output()
	r.mu.Unlock()
	output.Skip(time.Since(start))
	finished := func() time.Time { return time.Unix(0, c.ended) } // it does not change after the exit
	return output.Follow(ctx, start, gone, finished, emit)
}
