package containers

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
	"github.com/kubeparts/kubeparts/internal/crilog"
	"github.com/kubeparts/kubeparts/runtime"
)

// A LogReader is a Backend that reads the output of its instances. Each is copied to
// Container.LogPath, by one call and one goroutine while it runs, so that kubectl logs, the rotation of
// logs and termination messages from logs work as on a node, also after the instance was removed.
// Without it, logs are files only if the backend writes them to Container.LogPath.
type LogReader interface {
	// ReadLog copies the output of an instance to s.Stdout and s.Stderr, in order, and returns nil
	// when the instance has exited and all of its output is copied. It leaves out the first bytes of
	// each stream that skip counts. A backend with one stream for both writes Stdout. It is called
	// again after an error, and after a restart of the agent.
	ReadLog(ctx context.Context, id string, skip LogOffset, s runtime.Streams) error
}

// A LogOffset is a number of bytes of each stream.
type LogOffset struct{ Stdout, Stderr int64 }

const (
	logRetry    = time.Second      // before ReadLog is called again, doubled up to logRetryMax
	logRetryMax = 30 * time.Second // as long as ReadLog fails
	logWait     = time.Second      // how long an exit is held back for the rest of the output
)

// instanceLogs copies the output of instances to their log files.
//
// The position is not written with each entry: it is the content of the live file and what precedes
// it, which is in a file below dir since the last rotation. An agent that is killed between the rename
// of a rotation and ReopenContainerLog repeats the entries of one file; none is lost.
type instanceLogs struct {
	reader LogReader // nil: nothing is copied
	dir    string
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	all     map[string]*logCopy // by Key
	copying sync.WaitGroup
}

// A logCopy copies the output of one instance.
type logCopy struct {
	key, id, path string
	writer        *crilog.Writer // nil until the log is open
	cancel        context.CancelFunc
	done          chan struct{}
}

func newInstanceLogs(reader LogReader, dir string, log *slog.Logger) *instanceLogs {
	l := &instanceLogs{reader: reader, dir: dir, log: log, all: map[string]*logCopy{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// follow begins to copy the output of an instance that has started, unless it does so already.
func (l *instanceLogs) follow(c *instance) {
	if l.reader == nil || c.LogPath == "" || c.state == nil || c.state.Phase == Queued || c.state.StartedAt.IsZero() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all[c.key] != nil || l.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(l.ctx)
	cp := &logCopy{key: c.key, id: c.state.ID, path: c.LogPath, cancel: cancel, done: make(chan struct{})}
	l.all[c.key] = cp
	l.copying.Go(func() {
		defer close(cp.done)
		defer cancel()
		l.run(ctx, cp)
	})
}

// run copies until the output has ended or ctx is done.
func (l *instanceLogs) run(ctx context.Context, cp *logCopy) {
	for retry := logRetry; ; retry = min(2*retry, logRetryMax) {
		progress, err := l.copy(ctx, cp)
		if err == nil || ctx.Err() != nil {
			break // an unfinished line is read again
		}
		l.log.Warn("Failed to copy container output; will retry", "instance", cp.id, "path", cp.path, "err", err)
		if progress {
			retry = logRetry
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if cp.writer != nil {
		_ = cp.writer.Close() // each entry was written
	}
}

// copy calls the backend once, and reports whether there was output.
func (l *instanceLogs) copy(ctx context.Context, cp *logCopy) (progress bool, err error) {
	if cp.writer == nil {
		w, err := crilog.NewWriter(func() (io.WriteCloser, error) { return openLog(cp.path) }, l.position(cp.key, cp.path))
		if err != nil {
			return false, err
		}
		l.mu.Lock()
		cp.writer = w
		l.mu.Unlock()
	}
	begin := cp.writer.Written()
	stdout, stderr := cp.writer.Stream(crilog.Stdout), cp.writer.Stream(crilog.Stderr)
	err = l.reader.ReadLog(ctx, cp.id, LogOffset(begin), runtime.Streams{Stdout: stdout, Stderr: stderr})
	if err != nil {
		return cp.writer.Written() != begin, err // a line that has not ended is read again
	}
	if err := errors.Join(stdout.Close(), stderr.Close()); err != nil {
		l.log.Warn("Output is missing in container log", "instance", cp.id, "path", cp.path, "err", err)
	}
	return true, nil
}

func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
}

// position returns how much of the output is in the log and in files that were rotated before.
func (l *instanceLogs) position(key, path string) crilog.Offset {
	var at crilog.Offset
	if err := checkpoint.Read(l.path(key), &at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.log.Warn("Ignoring corrupt state file", "path", l.path(key), "err", err)
	}
	file, err := os.Open(path)
	if err != nil {
		return at // it does not exist yet
	}
	defer file.Close()
	return at.Plus(file)
}

func (l *instanceLogs) path(key string) string { return filepath.Join(l.dir, key+".json") }

// reopen continues in a new file, after the old one was renamed.
func (l *instanceLogs) reopen(key string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	cp := l.all[key]
	if cp == nil || cp.writer == nil {
		return notFound("log of instance", key)
	}
	select {
	case <-cp.done:
		return status.Errorf(codes.FailedPrecondition, "containers: the output of instance %s has ended", key)
	default:
	}
	at, err := cp.writer.Reopen()
	if err == nil {
		err = os.MkdirAll(l.dir, 0o700)
	}
	if err == nil {
		err = checkpoint.WriteUnsynced(l.path(key), at)
	}
	return err
}

// wait waits a moment for the rest of the output of an instance that has exited: termination messages
// are read from it.
func (l *instanceLogs) wait(ctx context.Context, c *instance) {
	l.mu.Lock()
	cp := l.all[c.key]
	l.mu.Unlock()
	left := min(logWait, logWait-time.Since(c.state.FinishedAt))
	if cp == nil || left <= 0 {
		return
	}
	timeout := time.NewTimer(left)
	defer timeout.Stop()
	select {
	case <-cp.done:
	case <-timeout.C:
	case <-ctx.Done():
	}
}

// remove ends the copy of an instance that is removed.
func (l *instanceLogs) remove(key string) {
	l.mu.Lock()
	cp := l.all[key]
	delete(l.all, key)
	l.mu.Unlock()
	if cp != nil {
		cp.cancel()
	}
	_ = os.Remove(l.path(key)) // usually it does not exist
}

// close ends all copies.
func (l *instanceLogs) close() {
	l.mu.Lock()
	l.cancel()
	l.mu.Unlock()
	l.copying.Wait()
}
