package logread

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/kubeparts/kubeparts/compose"
)

// Config configures a [Reader]. The zero value is valid.
type Config struct {
	// LiveOnly ignores rotated files, as the kubelet does.
	LiveOnly bool

	// PhysicalLines makes Tail and Since count the parts of a line that was too
	// long for the runtime as lines, as the kubelet does.
	PhysicalLines bool

	// Recheck is the interval at which a followed log is read without a
	// notification from the file system, and at which Running is called. Zero
	// means 1 second.
	Recheck time.Duration

	// Settle is how long a rotated file must not have been written before Follow
	// continues with the next one: a runtime may write to the old file until it has
	// opened the new one. Zero means 100 milliseconds.
	Settle time.Duration

	// Watch calls changed after each change in a directory, until stop is called;
	// changed does not block, and stop waits for a call in progress. If Watch
	// returns an error, the log is read every Recheck. If nil, the file system is
	// watched with fsnotify.
	Watch func(dir string, changed func()) (stop func(), err error)

	// Hooks are called for each Read.
	Hooks Hooks

	// Logger receives log messages. If nil, they are discarded.
	Logger *slog.Logger
}

// Hooks observe a Reader. They must not block. Any of them may be nil.
type Hooks struct {
	// Read is called at the end of each Read.
	Read func(ReadInfo)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add(&h.Read, o.Read)
	}
	return h
}

// A ReadInfo describes one call of Read.
type ReadInfo struct {
	Path    string
	Follow  bool
	Bytes   int64         // written
	Lines   int64         // read, including those not selected
	Skipped int64         // lines in neither format
	Gaps    int           // number of gaps
	Took    time.Duration // duration of the call
	Err     error         // result of the call
}

// A Request selects lines of a log.
type Request struct {
	// Path is the log file (runtime.LogReader). Rotated files are in the same
	// directory. Required.
	Path string

	// Stream selects one stream, or All, the zero value.
	Stream Stream

	// Since skips older lines. Zero means no limit.
	Since time.Time

	// Tail is the number of lines at the end. Lines skipped because of Since count;
	// lines of a stream that is not selected do not. Nil means all lines.
	Tail *int64

	// Limit is the maximum number of bytes written. Nil means no limit.
	Limit *int64

	// Timestamps writes the time before each line.
	Timestamps bool

	// Follow continues with lines as they are written, until the container has
	// terminated.
	Follow bool

	// Running reports whether the container can still write. It is called while a
	// log is followed, at the end of the file. An error is returned by Read; if the
	// runtime does not respond, Running should return true. If nil, the container
	// always runs.
	Running func(context.Context) (bool, error)

	// Gap is called with ErrRemoved, ErrDamaged or ErrTruncated where lines are
	// missing. All lines before the gap have been written to w. May be nil.
	Gap func(error)
}

// The errors passed to Request.Gap.
var (
	// ErrRemoved: rotated files were, or may have been, removed before they were
	// read.
	ErrRemoved = errors.New("rotated files were removed before they were read")

	// ErrDamaged: a compressed file is damaged or incomplete.
	ErrDamaged = errors.New("compressed file is damaged")

	// ErrTruncated: a file became shorter while it was read. It is read from its
	// beginning.
	ErrTruncated = errors.New("file was truncated while it was read")
)

// A Reader reads logs. Safe for concurrent use.
type Reader struct {
	cfg Config
}

// New returns a Reader for cfg. It returns an error if a duration is negative.
func New(cfg Config) (*Reader, error) {
	if cfg.Recheck < 0 || cfg.Settle < 0 {
		return nil, fmt.Errorf("logread: Config.Recheck (%v) or Config.Settle (%v) is negative", cfg.Recheck, cfg.Settle)
	}
	if cfg.Settle == 0 {
		cfg.Settle = 100 * time.Millisecond
	}
	if cfg.Recheck == 0 {
		cfg.Recheck = time.Second
	}
	if cfg.Watch == nil {
		cfg.Watch = listen
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Reader{cfg: cfg}, nil
}

func (q *Request) check() error {
	switch {
	case q.Path == "":
		return errors.New("Request.Path is empty")
	case q.Stream > Stderr:
		return fmt.Errorf("Request.Stream is %v", q.Stream)
	case q.Tail != nil && *q.Tail < 0:
		return fmt.Errorf("Request.Tail is %d", *q.Tail)
	case q.Limit != nil && *q.Limit < 0:
		return fmt.Errorf("Request.Limit is %d", *q.Limit)
	}
	return nil
}

// Read writes the lines that req selects to w. It returns nil at the end of the log,
// ctx's error if ctx is done, an error that wraps fs.ErrNotExist if the log does
// not exist, and w's error if a write fails. It writes many lines at once if
// available, and all available lines before it waits.
func (r *Reader) Read(ctx context.Context, req Request, w io.Writer) error {
	began := time.Now()
	if err := req.check(); err != nil {
		return fmt.Errorf("logread: %w", err)
	}
	if real, err := filepath.EvalSymlinks(req.Path); err == nil {
		req.Path = real // rotated files are in the directory of the target
	}
	rd := reading{r: r, req: req, out: newPrinter(w, req, r.cfg.PhysicalLines)}
	err := rd.run(ctx)
	if errors.Is(err, errLimit) {
		err = nil
	}
	if err == nil && rd.out.lines == 0 && rd.out.skipped > 0 {
		err = fmt.Errorf("%s: %w: begins with %q", req.Path, ErrFormat, rd.out.bad)
	}
	if rd.out.skipped > 0 {
		r.cfg.Logger.Warn("Skipped log lines with unknown format", "path", req.Path, "lines", rd.out.skipped, "first", string(rd.out.bad))
	}
	if err != nil {
		err = fmt.Errorf("logread: %w", err)
	}
	if hook := r.cfg.Hooks.Read; hook != nil {
		hook(ReadInfo{
			Path: req.Path, Follow: req.Follow, Bytes: rd.out.written, Lines: rd.out.lines, Skipped: rd.out.skipped,
			Gaps: rd.gaps, Took: time.Since(began), Err: err,
		})
	}
	return err
}

// A reading is one call of Read.
type reading struct {
	r    *Reader
	req  Request
	out  *printer
	gaps int
}

func (d *reading) run(ctx context.Context) error {
	var f *follower
	if d.req.Follow { // watches before it lists, so that no change is missed
		f = d.r.newFollower(d.req)
		defer f.stop()
	}
	segments, err := d.r.list(ctx, d.req.Path)
	if err != nil {
		return err
	}
	defer func() { closeAll(segments) }()
	if len(segments) == 0 {
		return fmt.Errorf("%s: %w", d.req.Path, fs.ErrNotExist)
	}
	var from start
	if d.req.Tail != nil {
		if from, err = locate(ctx, segments, *d.req.Tail, d.req.Stream, d.r.cfg.PhysicalLines, d.req.Follow); err != nil {
			return err
		}
	}
	for i, s := range segments {
		last := i == len(segments)-1
		if i < from.first() || !last && d.old(s) {
			continue
		}
		c, err := d.cursor(s, from.in(i), last && !d.req.Follow)
		if err != nil {
			return err
		}
		if err := c.copy(ctx); err != nil {
			return err
		}
		if last && d.req.Follow {
			closeAll(segments[:i])
			segments = nil
			return d.follow(ctx, f, c)
		}
		if err := c.finish(!last); err != nil {
			return err
		}
	}
	return d.out.flush()
}

// slack is the assumed maximum difference between the time of a line and the
// modification time of its file.
const slack = time.Minute

// old reports whether all lines of a file are older than Since.
func (d *reading) old(s *segment) bool {
	return !d.req.Since.IsZero() && s.mtime.Before(d.req.Since.Add(-slack))
}

// gap reports a gap at this place.
func (d *reading) gap(err error) error {
	d.gaps++
	d.r.cfg.Logger.Warn("Log is incomplete; continuing after the gap", "path", d.req.Path, "err", err)
	if d.req.Gap == nil {
		return nil
	}
	err2 := d.out.flush()
	d.req.Gap(err)
	return err2
}
